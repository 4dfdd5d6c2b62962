"""A source, a replica of it, and a process that serves the replica."""

import contextlib
import json
import os
import shutil

from harness import report
from harness.process import Failed, Process, run_to_end
from harness.session import parse_bytes

BESIDE = ("lanes", "chunk_bytes", "max_rate", "pipeline_nice")
KINDS = ("get", "scan", "write")
CPU = ("process", "load", "load_wait", "source", "machine")


class World:
    """The directories below settings.workdir: source, target, and runs."""

    def __init__(self, settings, payload):
        self.settings = settings
        self.payload = parse_bytes(payload)
        self.source = os.path.join(settings.workdir, "source")
        self.target = os.path.join(settings.workdir, "target")
        self.scratch = os.path.join(settings.workdir, "run")
        self.keys = 0
        self.generation = 1   # generation of the changes before refreshes
        self.made = {}
        self.runs = []
        os.makedirs(self.scratch, exist_ok=True)

    def say(self, text):
        report.say(text)

    def tool(self, name):
        return os.path.join(self.settings.build, "benchmarks",
                            "bench_" + name)

    def make_source(self):
        sizes = ["--log-normal"] if self.settings.log_normal else []
        self.made = run_to_end("make", [
            self.tool("make_database"), "--dir", self.source, "--bytes",
            self.payload, "--value-bytes", self.settings.value_bytes, *sizes],
                               self.scratch,
                               self.settings.deadline).json_report()
        self.keys = self.made["keys"]

    def pull_to_end(self, target, *more, job="pull", source=None, status=0):
        """Runs a pull of the command line to its end."""
        process = Process("pull", [
            self.settings.sstferry, job, source or self.source, target,
            "--json", "--progress", "never", "--log-level", "error",
            "--lanes", self.settings.lanes, *more], self.scratch)
        if process.wait(self.settings.deadline) != status:
            raise Failed("pull ended with %s: %s" % (process.exit_code,
                                                     process.error_text()))
        return process

    def pull(self, target, *more, **options):
        """Runs a pull; returns its JSON."""
        return self.pull_to_end(target, *more, **options).json_report()

    def seed(self):
        """Makes a new replica; removes an existing one."""
        shutil.rmtree(self.target, ignore_errors=True)
        return self.pull(self.target, "--method", "ingest")

    def change(self, **options):
        words = [self.tool("change_database"), "--dir", self.source, "--keys",
                 self.keys, "--value-bytes", self.settings.value_bytes]
        for name, value in options.items():
            words += ["--" + name.replace("_", "-"), value]
        run_to_end("change", words, self.scratch, self.settings.deadline)

    def copy_of_source(self, path):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.source, path)

    @contextlib.contextmanager
    def server(self, source=None, idle=False):
        """Runs a server. `idle`: it gets only CPU that no process wants."""
        process = Process("source", (["chrt", "--idle", "0"] if idle else []) + [
            self.settings.sstferry, "serve", "--db",
            "bench=" + (source or self.source), "--listen", "127.0.0.1:0",
            "--log-level", "error"], self.scratch)
        try:
            yield process, "sst://%s/bench" % process.line_starting(
                "listening on ")
        finally:
            process.stop()

    # ----- bench_serving -----

    def serve(self, name, *words):
        """Runs bench_serving; returns its report with the name of the run."""
        out = os.path.join(self.scratch, "serving.json")
        if os.path.exists(out):
            os.remove(out)
        settings = self.settings
        os.sync()
        argv = [self.tool("serving"), "--db", self.target, "--out", out,
                "--keys", self.keys, "--value-bytes", settings.value_bytes,
                "--distribution", settings.distribution, "--threads",
                settings.threads, "--cache-bytes", settings.cache_bytes, *words]
        if settings.log_normal:
            argv.append("--log-normal")
        process = Process("serving", argv, self.scratch)
        if process.wait(settings.deadline) != 0:
            raise Failed("%s: bench_serving ended with %s: %s" % (
                name, process.exit_code, process.error_text()))
        with open(out, encoding="utf-8") as text:
            run = json.load(text)
        run["name"] = name
        self.runs.append(run)
        return run

    def pipeline_words(self):
        words = []
        for option in BESIDE:
            value = getattr(self.settings, option)
            if value not in (None, ""):
                words += ["--" + option.replace("_", "-"), value]
        return words

    def change_anew(self):
        self.generation += 1
        self.change(generation=self.generation,
                    overwrite_permille=self.settings.changed_permille)

    def serve_and_refresh(self, name, share, *words):
        self.change_anew()
        # A closed loop leaves no idle CPU, so a source that gets only idle CPU
        # would starve.
        idle = not self.settings.source_beside and "--closed-loop" not in words
        with self.server(idle=idle) as (process, url):
            return self.serve(
                name, "--source", url, "--share", share, "--source-pid", process.pid,
                *self.pipeline_words(), *words)


def phase(run, name):
    """Returns the phase with this name, or one without operations."""
    for found in run["phases"]:
        if found["name"] == name:
            return found
    none = {"count": 0, "p50_us": 0, "p90_us": 0, "p99_us": 0, "p999_us": 0,
            "max_us": 0}
    return {"name": name, "begin_seconds": 0, "seconds": 0, "operations": 0,
            "operations_per_second": 0, "heartbeat": none,
            "read_bytes": 0, "written_bytes": 0,
            "cpu_seconds": dict.fromkeys(CPU, 0),
            **{kind: none for kind in KINDS}}


def cores_beside_load(one):
    """Returns the cores that a phase used outside the load's own threads."""
    cpu = one["cpu_seconds"]
    return (cpu["process"] - cpu["load"] + cpu["source"]) / \
        max(one["seconds"], 1e-9)


def cores_of_others(one):
    """Returns the cores used by neither the run nor its source: 0 on an idle
    machine, except for the kernel's own threads."""
    cpu = one["cpu_seconds"]
    return max(0.0, cpu["machine"] - cpu["process"] - cpu["source"]) / \
        max(one["seconds"], 1e-9)


def moving(run):
    """Returns the sum of the refresh's phases without its compaction."""
    parts = [phase(run, "during/" + stage)
             for stage in ("prepare", "transfer", "publish")]
    seconds = sum(part["seconds"] for part in parts)
    operations = sum(part["operations"] for part in parts)
    return {"seconds": seconds, "operations": operations,
            "operations_per_second": operations / max(seconds, 1e-9),
            "cpu_seconds": {name: sum(part["cpu_seconds"][name]
                                      for part in parts)
                            for name in CPU}}


def pipeline_cores(run, one):
    """Returns the cores of the refresh in the phase `one`, without RocksDB's
    background work for the load."""
    return max(0.0, cores_beside_load(one) -
               cores_beside_load(phase(run, "before")))


def refresh_rates(run):
    """Returns bytes per second of SST files, without and with compaction."""
    moved = run["refresh"]["sst_bytes"]
    return (moved / max(moving(run)["seconds"], 1e-9),
            moved / max(phase(run, "during")["seconds"], 1e-9))


def nearest_rank(values, share):
    ordered = sorted(values)
    if not ordered:
        return 0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def blocked_window(run):
    """Returns (p99, max) over the ingest calls of the microseconds without a
    heartbeat."""
    values = [call["blocked_micros"] for call in run["ingest_calls"]]
    return nearest_rank(values, 0.99), max(values, default=0)
