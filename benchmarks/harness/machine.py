"""Facts to record with every figure: machine, kernel, versions."""

import datetime
import os
import platform
import re
import shutil
import subprocess


def output_of(argv, cwd=None):
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True,
                              timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).strip()


def first_match(path, pattern):
    try:
        with open(path, encoding="utf-8") as text:
            found = re.search(pattern, text.read(), re.M)
    except OSError:
        return ""
    return found.group(1).strip() if found else ""


def rocksdb_version():
    shell = shutil.which("ldb")
    text = output_of([shell, "--version"]) if shell else ""
    found = re.search(r"(\d+\.\d+\.\d+)", text)
    return found.group(1) if found else "unknown"


def facts(repository, workdir):
    load = os.getloadavg()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%SZ"),
        "cpu": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "cores": os.cpu_count(),
        "memory_kib": int(first_match("/proc/meminfo",
                                      r"^MemTotal:\s*(\d+)") or 0),
        "kernel": platform.release(),
        "distribution": first_match("/etc/os-release",
                                    r'^PRETTY_NAME="?([^"\n]*)'),
        # If several file systems are mounted there, the last one is used.
        "file_system": output_of(["findmnt", "-n", "-o", "FSTYPE", "-T",
                                  workdir]).split("\n")[-1],
        "load_at_start": load[0],
        "rocksdb": rocksdb_version(),
        "rsync": output_of(["rsync", "--version"]).splitlines()[:1],
        "commit": output_of(["git", "rev-parse", "--short=12", "HEAD"],
                            repository),
        "uncommitted_changes": bool(
            output_of(["git", "status", "--porcelain", "-uno"], repository)),
    }
