"""Pulls beside what an administrator does without sstferry: pipes of ssh.

A database that was overwritten at random is copied in turn by a pull and by a
pipe, --repeat times, until the target's files are synced. The pipes check
nothing, and need a source that is stopped.
"""

import contextlib
import os
import shutil
import statistics
import subprocess
import time

from harness.process import Failed, Process, make_durable, run_to_end

# Maximum time of a compressed pull as a multiple of that of the pipe.
COMPRESSED_TIMES = 1.05
# Minimum rate of a clone over ssh as a share of that of `ssh cat`.
CLONE_SHARE = 0.95
ADDRESS = "10.77.0.1"
PORT = 7422


@contextlib.contextmanager
def sshd(namespace, scratch):
    """Runs sshd in the namespace; yields ssh's command without the host."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                        os.path.join(scratch, name)], check=True)
    shutil.copy(os.path.join(scratch, "user.pub"),
                os.path.join(scratch, "authorized"))
    os.makedirs("/run/sshd", exist_ok=True)
    config = os.path.join(scratch, "sshd_config")
    with open(config, "w", encoding="utf-8") as out:
        out.write("Port %d\nListenAddress %s\nHostKey %s/host\n"
                  "AuthorizedKeysFile %s/authorized\nStrictModes no\n"
                  "UsePAM no\nPidFile none\nPermitRootLogin yes\n" %
                  (PORT, ADDRESS, scratch, scratch))
    server = Process("sshd", ["ip", "netns", "exec", namespace,
                              shutil.which("sshd"), "-D", "-e", "-f", config],
                     scratch)
    try:
        yield ["ssh", "-i", os.path.join(scratch, "user"), "-p", str(PORT),
               "-o", "StrictHostKeyChecking=no", "-o",
               "UserKnownHostsFile=/dev/null", "-o", "ConnectionAttempts=5",
               "-o", "LogLevel=ERROR"]
    finally:
        server.stop()


class Copies:
    def __init__(self, shaped, namespaces, ssh, scratch):
        self.shaped = shaped
        self.inside = ["ip", "netns", "exec", namespaces[1]]
        self.ssh = ssh
        self.scratch = scratch
        self.target = os.path.join(scratch, "target")

    def pull(self, *options):
        settings = self.shaped.settings
        return self.timed("pull", [
            settings.sstferry, "pull",
            "ssh://root@%s%s" % (ADDRESS, self.shaped.database), self.target,
            "--ssh-command", " ".join(self.ssh), "--remote-command",
            settings.sstferry, "--progress", "never", *options])

    def pipe(self, remote, local):
        os.makedirs(self.target)
        return self.timed("pipe", [
            "bash", "-o", "pipefail", "-c", "%s root@%s '%s' | %s" % (
                " ".join(self.ssh), ADDRESS,
                remote % self.shaped.database, local % self.target)])

    def timed(self, role, argv):
        settings = self.shaped.settings
        os.sync()
        started = time.monotonic()
        process = Process(role, self.inside + argv, self.scratch)
        if process.wait(settings.deadline) != 0:
            raise Failed("%s: %s" % (role, process.error_text()))
        make_durable(self.target)
        seconds = time.monotonic() - started
        found = run_to_end("check", [
            self.shaped.bench("check_database"), "--dir", self.target],
                           self.scratch, settings.deadline).json_report()
        shutil.rmtree(self.target)
        if found["digest"] != settings.content["digest"]:
            raise Failed("%s: the target differs from the source" % role)
        return seconds


def compare(shaped, link, rate, options, remote, local):
    """Returns the seconds of all runs: {"pull": [...], "pipe": [...]}."""
    scratch = os.path.join(shaped.settings.workdir, "ssh")
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    runs = {"pull": [], "pipe": []}
    with link(rate) as namespaces, sshd(namespaces[0], scratch) as ssh:
        copies = Copies(shaped, namespaces, ssh, scratch)
        for _ in range(shaped.settings.repeat):
            runs["pull"].append(copies.pull(*options))
            runs["pipe"].append(copies.pipe(remote, local))
    return runs


def answer(shaped, link):
    shaped.make_database("--live")
    rate = shaped.settings.compress_rate * 1e6
    slow = compare(shaped, link, rate, ("--compress", "auto"),
                   "tar -C %s -cf - . | zstd -q -T2",
                   "zstd -q -d | tar -C %s -xf -")
    fast = compare(shaped, link, 0, ("--method", "clone", "--compress",
                                     "none"),
                   "tar -C %s -cf - .", "tar -C %s -xf -")
    middle = {name: {who: statistics.median(runs[who]) for who in runs}
              for name, runs in (("slow", slow), ("fast", fast))}
    times = middle["slow"]["pull"] / middle["slow"]["pipe"]
    share = middle["fast"]["pipe"] / middle["fast"]["pull"]
    problems = []
    if times > COMPRESSED_TIMES:
        problems.append("%.2f times the time of zstd -T2 over ssh, at most "
                        "%g" % (times, COMPRESSED_TIMES))
    if share < CLONE_SHARE:
        problems.append("a clone over ssh has %.2f of the rate of ssh cat, at "
                        "least %g" % (share, CLONE_SHARE))
    return {"rate_bytes_per_sec": rate, "runs": {"slow": slow, "fast": fast},
            "median": middle, "times": times, "share": share,
            "problems": problems}


def as_text(out):
    return ("| Copy | pull s | pipe of ssh s | pull / pipe |\n"
            "|---|---|---|---|\n"
            "| %.1f MB/s, `--compress auto` and `zstd -T2` | %.2f | %.2f | "
            "%.2f |\n| not shaped, `--method clone` and `ssh cat` (tar) | "
            "%.2f | %.2f | %.2f |\n" % (
                out["rate_bytes_per_sec"] / 1e6,
                out["median"]["slow"]["pull"], out["median"]["slow"]["pipe"],
                out["times"],
                out["median"]["fast"]["pull"], out["median"]["fast"]["pipe"],
                1 / out["share"]))
