"""Drivers, sstferry and directories: code that the programs here share."""

import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
STEP_SECONDS = 180


class Failed(Exception):
    """An application failed at a verb. The message names the verb and the reason."""


class Driver:
    """A driver process: reads a verb per line and answers with a line. It restarts
    after a crash, without the database that it had open."""

    def __init__(self, argv, environment, log):
        self.argv, self.log = argv, log
        self.environment = {**os.environ, **environment}
        self.process = None
        self.rest = b""

    def say(self, *words):
        if self.process is None:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(
                    self.argv, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                    start_new_session=True)
            self.rest = b""
        line = " ".join(map(str, words))
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            answer = self._answer()
        except BrokenPipeError:
            answer = None
        if answer is None:
            self.kill()
            raise Failed(f"{words[0]}: the application ended, or took more than {STEP_SECONDS} s; see {self.log}")
        if not answer.startswith("ok "):
            raise Failed(f"{words[0]}: {answer.removeprefix('error ')}")
        return json.loads(answer[3:])

    def _answer(self):
        deadline = time.monotonic() + STEP_SECONDS
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                text = line.decode(errors="replace")
                if text.startswith(("ok ", "error ")):
                    return text
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            block = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not block:
                return None
            self.rest += block

    def kill(self):
        """Kills the driver and its children with SIGKILL."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


class Result:
    """The result of one run of sstferry."""

    def __init__(self, status, message, report):
        self.status, self.message, self.report = status, message, report


class Sstferry:
    """The binary. It is copied to `work` first, so that a later build does not change it."""

    def __init__(self, binary, work):
        self.binary = os.path.join(work, "sstferry")
        shutil.copy(binary, self.binary)
        self.version = subprocess.run([self.binary, "--version"], capture_output=True, text=True,
                                      check=True).stdout
        self.help = subprocess.run([self.binary, "pull", "--help=all"], capture_output=True, text=True,
                                   check=True).stdout

    def rocksdb(self):
        """Returns the version of RocksDB inside, for example "11.8.1"."""
        words = self.version.split()
        return next(words[i + 1].strip(",;") for i, word in enumerate(words) if word.lower() == "rocksdb")

    def pull(self, source, target, *options, job="pull"):
        argv = [self.binary, job, source, target, "--json", "--progress", "never", "--log-level", "error",
                *options]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=STEP_SECONDS)
        except subprocess.TimeoutExpired:
            return Result("TIMEOUT", f"took more than {STEP_SECONDS} s", {})
        try:
            report = json.loads(done.stdout)
        except ValueError:
            return Result(f"EXIT_{done.returncode}", done.stderr.strip()[:2000], {})
        status = report["status"] if done.returncode else "OK"
        return Result(status, (report["error"] or {}).get("message", ""), report)

    @contextlib.contextmanager
    def serving(self, directory, log):
        """Serves `directory` on a free port; yields the URL."""
        with open(log, "ab") as err:
            server = subprocess.Popen(
                [self.binary, "serve", "--db", f"app={directory}", "--listen", "127.0.0.1:0", "--allow-missing",
                 "--log-level", "warning", "--progress", "never"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, text=True)
        try:
            ready, _, _ = select.select([server.stdout], [], [], STEP_SECONDS)
            line = server.stdout.readline() if ready else ""
            if not line.startswith("listening on "):
                raise Failed(f"serve did not say 'listening on HOST:PORT'; see {log}")
            yield f"sst://{line.split()[-1]}/app"
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            server.stdout.close()


def copy(source, target):
    """Copies a directory like cp -a."""
    subprocess.run(["cp", "-a", "--", source, target], check=True, timeout=STEP_SECONDS, stdin=subprocess.DEVNULL)


def remove(path):
    shutil.rmtree(path, ignore_errors=True)


def listing(directory):
    """Returns {name: digest of the bytes} of all files except logs and sstferry's
    health record; None if the directory does not exist."""
    if not os.path.isdir(directory):
        return None
    files = {}
    for root, _, names in os.walk(directory):
        for name in names:
            if name.startswith("LOG") or name in ("LOCK", "sstferry.health"):
                continue
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, directory)] = hashlib.file_digest(file, "sha256").hexdigest()
    return files


def stamps(directory):
    """Returns name, inode, size and time of all files, which must stay the same in a source."""
    found = {}
    for root, _, names in os.walk(directory):
        for name in names:
            stat = os.stat(os.path.join(root, name))
            found[os.path.join(root, name)] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found
