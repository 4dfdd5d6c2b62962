"""Starts processes, measures their resources, and stops only its own."""

import json
import os
import signal
import subprocess
import threading
import time

START_SECONDS = 30
SAMPLE_SECONDS = 0.2


class Failed(Exception):
    """A contender or a helper failed."""


class Process:
    """A child process with its output in files, and its resource usage.

    cpu_seconds and peak_rss_bytes come from wait4(), and include children for
    which the process itself waited (rsync forks one per connection).
    """

    def __init__(self, role, argv, scratch, stdin=None, stdout=None):
        self.role = role
        self.argv = [str(word) for word in argv]
        self.usage = None
        self.exit_code = None
        self.ended_at = None
        self.stdout_path = os.path.join(scratch, role + ".stdout")
        self.stderr_path = os.path.join(scratch, role + ".stderr")
        self.started_at = time.monotonic()
        with open(self.stdout_path, "wb") as out, \
                open(self.stderr_path, "wb") as err:
            self.popen = subprocess.Popen(
                self.argv, stdin=stdin or subprocess.DEVNULL,
                stdout=stdout or out, stderr=err)

    @property
    def pid(self):
        return self.popen.pid

    def line_starting(self, prefix):
        """Waits for a line of standard output; returns it without prefix."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with open(self.stdout_path, encoding="utf-8") as out:
                for line in out:
                    if line.startswith(prefix) and line.endswith("\n"):
                        return line[len(prefix):].strip()
            if self.poll():
                break
            time.sleep(0.01)
        raise Failed("%s did not print %r: %s" %
                     (self.role, prefix, self.error_text()))

    def poll(self):
        """Returns true once the process has ended."""
        if self.exit_code is None:
            self._reap(os.WNOHANG)
        return self.exit_code is not None

    def wait(self, seconds):
        """Waits for the end; kills a process that takes longer."""
        if self.exit_code is not None:
            return self.exit_code
        killer = threading.Timer(seconds, self.popen.send_signal,
                                 [signal.SIGKILL])
        killer.start()
        try:
            self._reap(0)
        finally:
            killer.cancel()
        return self.exit_code

    def stop(self, seconds=20):
        """Sends SIGTERM, then SIGKILL. May be called twice."""
        if not self.poll():
            os.kill(self.pid, signal.SIGTERM)
            self.wait(seconds)

    def _reap(self, flags):
        pid, status, usage = os.wait4(self.pid, flags)
        if pid == 0:
            return
        self.ended_at = time.monotonic()
        self.exit_code = os.waitstatus_to_exitcode(status)
        self.popen.returncode = self.exit_code
        self.usage = usage

    def error_text(self):
        with open(self.stderr_path, encoding="utf-8", errors="replace") as err:
            return err.read()[-2000:].strip()

    def json_report(self):
        """Returns the JSON object at the end of standard output, or None."""
        with open(self.stdout_path, encoding="utf-8", errors="replace") as out:
            lines = out.read().strip().splitlines()
        text = "\n".join(lines)
        for candidate in (lines[-1] if lines else "", text):
            try:
                found = json.loads(candidate)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
        return None

    def cpu_seconds(self):
        """Returns user and system time. Call it after the process's end."""
        return self.usage.ru_utime + self.usage.ru_stime

    def facts(self):
        return {
            "role": self.role,
            "command": self.argv,
            "exit_code": self.exit_code,
            "cpu_user_seconds": self.usage.ru_utime if self.usage else None,
            "cpu_system_seconds": self.usage.ru_stime if self.usage else None,
            "peak_rss_bytes":
                self.usage.ru_maxrss * 1024 if self.usage else None,
            "report": self.json_report(),
        }


def run_to_end(role, argv, scratch, seconds):
    """Runs a helper. Raises Failed unless its exit code is 0."""
    process = Process(role, argv, scratch)
    if process.wait(seconds) != 0:
        raise Failed("%s ended with %s: %s" % (
            " ".join(process.argv), process.exit_code, process.error_text()))
    return process


def tree_bytes(paths):
    """Returns the bytes of the regular files below paths, each inode once."""
    seen = {}
    stack = [path for path in paths if os.path.isdir(path)]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        info = entry.stat(follow_symlinks=False)
                        seen[info.st_ino] = info.st_size
        except FileNotFoundError:
            continue
    return sum(seen.values())


class ByteSampler:
    """Samples tree_bytes(paths) five times a second in a thread."""

    def __init__(self, paths):
        self.paths = paths
        self.series = []
        self._done = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while True:
            self.series.append([round(time.monotonic() - self._started, 3),
                                tree_bytes(self.paths)])
            if self._done.wait(SAMPLE_SECONDS):
                return

    def stop(self):
        self._done.set()
        self._thread.join()
        self.series.append([round(time.monotonic() - self._started, 3),
                            tree_bytes(self.paths)])
        return self.series


def make_durable(path):
    """Calls fsync for every file and directory below path."""
    for root, _, names in os.walk(path):
        for name in names + ["."]:
            fd = os.open(os.path.join(root, name), os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
