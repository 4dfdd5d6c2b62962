"""The contenders: each copies a closed database directory to a new one.

A contender is a function (run) -> None. It starts its processes through the
Run, so that all of them are measured in the same way. The clock starts with
Run.start_clock(), which is called when a server (if any) listens. It stops when
the last process for which the user waits has ended and the target is synced.
"""

import os
import shutil
import socket
import subprocess
import time

from harness.process import (ByteSampler, Failed, Process, make_durable,
                             tree_bytes)


class Run:
    """One copy of one database by one contender."""

    def __init__(self, settings, source, scratch):
        self.settings = settings
        self.source = source
        self.scratch = scratch
        self.target = os.path.join(scratch, "target")
        self.extra_paths = []   # directories whose growth counts as progress
        self.processes = []
        self.seconds = None
        self.sync_seconds = None
        self.target_bytes = None
        self.series = []
        self._sampler = None
        self._started = None

    def bench(self, name):
        return os.path.join(self.settings.build, "benchmarks", "bench_" + name)

    def spawn(self, role, argv, **streams):
        process = Process(role, argv, self.scratch, **streams)
        self.processes.append(process)
        return process

    def start_clock(self):
        self._sampler = ByteSampler(
            [self.target, self.target + ".sstferry"] + self.extra_paths)
        self._started = time.monotonic()

    def finish(self, last):
        """Waits for the process for which the user waits, then syncs."""
        code = last.wait(self.settings.deadline)
        if code != 0:
            raise Failed("%s ended with %s: %s" %
                         (last.role, code, last.error_text()))
        before_sync = time.monotonic()
        make_durable(self.target)
        ended = time.monotonic()
        self.series = self._sampler.stop()
        self.seconds = (last.ended_at - self._started) + (ended - before_sync)
        self.sync_seconds = ended - before_sync

    def expect_end(self, process, seconds=20):
        """Waits for a server that ends by itself after one transfer."""
        if process.wait(seconds) != 0:
            raise Failed("%s ended with %s: %s" % (
                process.role, process.exit_code, process.error_text()))

    def close(self):
        for process in reversed(self.processes):
            process.stop()
        if self._sampler is not None and not self.series:
            self.series = self._sampler.stop()
        self.target_bytes = tree_bytes([self.target])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(server, port):
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if server.poll() or time.monotonic() > deadline:
                raise Failed("rsync daemon: " + server.error_text()) from None
            time.sleep(0.02)


def make_certificates(directory):
    """Makes a CA and certificates; returns the options of each side."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=benchmark CA",
            "-keyout", "ca.key", "-out", "ca.pem")
    for side in ("source", "target"):
        openssl("req", *curve, "-subj", "/CN=" + side,
                "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", side + ".key", "-out", side + ".csr")
        openssl("x509", "-req", "-in", side + ".csr", "-CA", "ca.pem",
                "-CAkey", "ca.key", "-copy_extensions", "copy", "-days", "2",
                "-out", side + ".pem")
    return {side: ["--tls-cert", os.path.join(directory, side + ".pem"),
                   "--tls-key", os.path.join(directory, side + ".key"),
                   "--tls-ca", os.path.join(directory, "ca.pem")]
            for side in ("source", "target")}


def sstferry_with(*options, tls=False):
    def contender(run):
        sides = (make_certificates(run.scratch) if tls
                 else {"source": [], "target": []})
        server = run.spawn("source", [
            run.settings.sstferry, "serve", "--db", "bench=" + run.source,
            "--listen", "127.0.0.1:0", "--once", *sides["source"]])
        address = server.line_starting("listening on ")
        run.start_clock()
        client = run.spawn("target", [
            run.settings.sstferry, "pull", "sst://%s/bench" % address,
            run.target, "--lanes", run.settings.lanes, "--json",
            "--progress", "never", *options, *sides["target"]])
        run.finish(client)
        run.expect_end(server)
    return contender


def sstferry_local_with(*options):
    """Runs both sides in one process, which shows what the sockets cost."""
    def contender(run):
        run.start_clock()
        run.finish(run.spawn("both", [
            run.settings.sstferry, "pull", run.source, run.target,
            "--lanes", run.settings.lanes, "--json", "--progress", "never",
            *options]))
    return contender


def put(run):
    server = run.spawn("source", [
        run.bench("put_baseline"), "source", "--db", run.source,
        "--listen", "127.0.0.1:0"])
    address = server.line_starting("listening on ")
    run.start_clock()
    client = run.spawn("target", [
        run.bench("put_baseline"), "target", "--dir", run.target,
        "--connect", address, "--lanes", run.settings.lanes])
    run.finish(client)
    run.expect_end(server)
    counts = [p.json_report()["entries"] for p in (server, client)]
    if counts[0] != counts[1]:
        raise Failed("put sent %d entries and wrote %d" % tuple(counts))


def ceiling_with(mode):
    def contender(run):
        server = run.spawn("source", [
            run.bench("ceiling"), "source", "--dir", run.source,
            "--listen", "127.0.0.1:0"])
        address = server.line_starting("listening on ")
        run.start_clock()
        client = run.spawn("target", [
            run.bench("ceiling"), "target", "--dir", run.target,
            "--connect", address, "--lanes", run.settings.lanes,
            "--mode", mode])
        run.finish(client)
        run.expect_end(server)
    return contender


def store_and_forward(run):
    server = run.spawn("source", [
        run.bench("store_and_forward"), "source", "--db", run.source,
        "--scratch", os.path.join(run.scratch, "chunks"),
        "--listen", "127.0.0.1:0"])
    address = server.line_starting("listening on ")
    run.extra_paths = [run.target + ".staging"]
    run.start_clock()
    client = run.spawn("target", [
        run.bench("store_and_forward"), "target", "--dir", run.target,
        "--connect", address, "--lanes", run.settings.lanes])
    run.finish(client)
    run.expect_end(server)


RSYNC_CONFIG = """use chroot = no
uid = %d
gid = %d
pid file = %s
[bench]
path = %s
read only = yes
"""


def rsync(run):
    config = os.path.join(run.scratch, "rsyncd.conf")
    pid_file = os.path.join(run.scratch, "rsyncd.pid")
    with open(config, "w", encoding="utf-8") as out:
        out.write(RSYNC_CONFIG % (os.getuid(), os.getgid(), pid_file,
                                  run.source))
    port = free_port()
    server = run.spawn("source", [
        "rsync", "--daemon", "--no-detach", "--config", config,
        "--address", "127.0.0.1", "--port", port])
    await_port(server, port)
    run.start_clock()
    client = run.spawn("target", [
        "rsync", "-a", "--whole-file",
        "rsync://127.0.0.1:%d/bench/" % port, run.target])
    run.finish(client)


def backup_engine(run):
    backup = os.path.join(run.scratch, "backup")
    run.extra_paths = [backup]
    run.start_clock()
    program = run.spawn("both", [
        run.bench("backup_engine"), "--db", run.source,
        "--backup-dir", backup, "--target", run.target,
        "--lanes", run.settings.lanes])
    run.finish(program)


def ldb(run):
    run.start_clock()
    dump = run.spawn("source", [
        "ldb", "--db=" + run.source, "--hex", "dump"],
                     stdout=subprocess.PIPE)
    load = run.spawn("target", [
        "ldb", "--db=" + run.target, "--hex", "--create_if_missing",
        "--disable_wal", "--bulk_load", "load"], stdin=dump.popen.stdout)
    dump.popen.stdout.close()
    run.finish(load)
    run.expect_end(dump)


# In the order of the tables. The names of ceilings must be ceiling-*.
CONTENDERS = {
    "sstferry": sstferry_with("--method", "ingest"),
    "sstferry-rebuilt": sstferry_with("--method", "ingest"),
    "sstferry-tls": sstferry_with("--method", "ingest", tls=True),
    "sstferry-clone": sstferry_with("--method", "clone"),
    "sstferry-clone-tls": sstferry_with("--method", "clone", tls=True),
    "sstferry-local": sstferry_local_with("--method", "ingest"),
    "put": put,
    "rsync": rsync,
    "backup-engine": backup_engine,
    "ldb": ldb,
    "store-and-forward": store_and_forward,
    "ceiling-buffered": ceiling_with("buffered"),
    "ceiling-direct": ceiling_with("direct"),
}

# Used only by questions that name them.
VARIANTS = {
    "sstferry-durability-chunk": sstferry_with(
        "--method", "ingest", "--durability", "chunk"),
    "sstferry-durability-none": sstferry_with(
        "--method", "ingest", "--durability", "none"),
    "sstferry-local-rebuilt": sstferry_local_with("--method", "ingest"),
}


def missing_program(name, settings):
    """Returns why this contender cannot run here; "" if it can."""
    if name.startswith("sstferry"):
        path = settings.sstferry
        if name.endswith("-tls") and shutil.which("openssl") is None:
            return "openssl is not installed"
        return "" if os.access(path, os.X_OK) else path + " is missing"
    if name in ("rsync", "ldb") and shutil.which(name) is None:
        return "%s is not installed" % name
    return ""
