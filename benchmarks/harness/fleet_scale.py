"""A model of how long many targets take, beside what they took.

A clone of N targets at once, each over a link of its own, takes as long as the
slowest of these: a link with the bytes of one target, the network card or disk
that all share with the bytes of N, the CPU with the work of N. The time that
one target takes beyond that of its link (start, last syncs, exchange) is added
once:

  seconds = max(bytes / link, N * bytes / shared, N * CPU of one / cores) + rest

One target alone gives bytes, CPU and rest. The same model is applied to
restores from a bucket. This machine has all processes on its cores; in
production the source and each target have their own, so that targets add no
work to each other.
"""

import os
import shutil
import subprocess

from . import report
from .fleet_links import address, inside, links
from .process import Failed, Process, run_to_end

MOST_RATIO = 1.25
BUCKET_PORT = 7421
KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret",
        "ROOT_ACCESS_KEY": "user", "ROOT_SECRET_KEY": "secret",
        "AWS_EC2_METADATA_DISABLED": "true"}
# What the last table assumes: a database of 1 TB, network cards of 10 Gbit/s at
# the targets and 25 Gbit/s at the source, a bucket that has no limit of its
# own, and 8 cores at each host.
DATABASE_BYTES = 1e12
TARGET_LINK = 10e9 / 8
SOURCE_LINK = 25e9 / 8
CORES = 8


def model(count, one, link, shared, cores, with_targets):
    cpu = one["server_cpu_s"] + (one["target_cpu_s"] if with_targets else 0)
    return max(one["bytes"] / link,
               count * one["bytes"] / shared if shared else 0,
               count * cpu / cores) + one["rest"]


class Fleet:
    def __init__(self, settings, workdir):
        self.settings = settings
        self.scratch = os.path.join(workdir, "run")
        self.bucket = os.path.join(workdir, "bucket")
        os.environ.update(KEYS)

    def fill_bucket(self):
        """Pushes the database into an archive in a new bucket."""
        shutil.rmtree(self.bucket, ignore_errors=True)
        for name in ("root/bench", "iam"):
            os.makedirs(os.path.join(self.bucket, name))
        with links(1, 0) as names:
            server = self.start("bucket", names)
            try:
                for words in (["init"], ["push", self.settings.database]):
                    run_to_end("push", inside(
                        names[0], self.settings.sstferry, "archive", *words,
                        "s3://bench/a", "--endpoint",
                        "http://127.0.0.1:%d" % BUCKET_PORT),
                               self.bucket, self.settings.deadline)
            finally:
                server.stop()

    def start(self, way, names):
        if way == "source":
            server = Process("source", inside(
                names[0], self.settings.sstferry, "serve", "--insecure",
                "--listen", "0.0.0.0:7420", "--db",
                "x=" + self.settings.database, "--max-per-address", "4096",
                "--max-transfers", "256", "--progress", "never"), self.scratch)
            server.line_starting("listening on ")
            return server
        server = Process("bucket", inside(
            names[0], os.path.join(self.settings.build, "servers",
                                   "versitygw"),
            "--port", "0.0.0.0:%d" % BUCKET_PORT, "--iam-dir",
            os.path.join(self.bucket, "iam"), "posix",
            os.path.join(self.bucket, "root")), self.bucket)
        subprocess.run(inside(
            names[0], "curl", "--silent", "--output", "/dev/null", "--retry",
            "60", "--retry-delay", "1", "--retry-connrefused",
            "http://127.0.0.1:%d/" % BUCKET_PORT), check=True)
        return server

    def run(self, way, count, bits):
        """Copies to `count` targets at once. Returns what it took."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(self.scratch)
        from_source = ["--snapshot", "latest", "--method", "clone",
                       "--compress", "none"]
        with links(count, bits) as names:
            server = self.start(way, names)
            try:
                pulls = [Process("target%d" % i, inside(
                    names[1 + i], self.settings.sstferry, "pull",
                    *(["sst://%s/x" % address(i)] + from_source
                      if way == "source" else
                      ["s3://bench/a", "--endpoint",
                       "http://%s:%d" % (address(i), BUCKET_PORT)]),
                    os.path.join(self.scratch, "t%d" % i), "--json",
                    "--progress", "never"), self.scratch)
                         for i in range(count)]
                for pull in pulls:
                    if pull.wait(self.settings.deadline) != 0:
                        raise Failed("%s: %s" % (pull.role,
                                                 pull.error_text()))
            finally:
                server.stop()
        digests = set()
        for i in range(count):
            target = os.path.join(self.scratch, "t%d" % i)
            digests.add(run_to_end("check", [
                os.path.join(self.settings.build, "benchmarks",
                             "bench_check_database"), "--dir", target],
                                   self.scratch, self.settings.deadline
                                   ).json_report()["digest"])
            shutil.rmtree(target)
        if len(digests) != 1:
            raise Failed("targets differ")
        seconds = max(p.ended_at for p in pulls) - \
            min(p.started_at for p in pulls)
        carried = pulls[0].json_report()["wire_bytes"]
        return {"seconds": seconds, "bytes": carried,
                "rest": max(0.0, seconds - carried / (bits / 8)),
                "server_cpu_s": server.cpu_seconds(),
                "target_cpu_s": sum(p.cpu_seconds() for p in pulls) / count,
                "rss_mib": server.facts()["peak_rss_bytes"] / 2**20}


def ask(settings, workdir):
    fleet = Fleet(settings, workdir)
    fleet.fill_bucket()
    bits = settings.megabits * 1_000_000
    count = int(settings.targets.split(",")[-1])
    rows = []
    ones = {}
    print("| From | Targets | MB each | Link, Mbit/s | Model, s | Found, s | "
          "Server CPU s | Server memory, MiB |\n" + "|---" * 8 + "|")
    for way in ("source", "bucket"):
        ones[way] = one = fleet.run(way, 1, bits)
        many = fleet.run(way, count, bits)
        expected = model(count, one, bits / 8, 0, os.cpu_count(), True)
        print("| %s | %d | %.0f | %d | %.1f | %.1f | %.1f | %.0f |" % (
            way, count, one["bytes"] / 1e6, settings.megabits, expected,
            many["seconds"], many["server_cpu_s"], many["rss_mib"]),
              flush=True)
        rows.append(("%d targets of one %s: time over the model's" % (
            count, way), many["seconds"] / expected, MOST_RATIO))
    scale = DATABASE_BYTES / ones["source"]["bytes"]
    print("\nThe model for 1 TB, hosts with %d cores, 10 Gbit/s at each target "
          "and 25 Gbit/s at the source:\n\n| Targets | One source, hours | A "
          "bucket without limits, hours |\n|---|---|---|" % CORES)
    for targets in (1, 10, 100):
        hours = []
        for way in ("source", "bucket"):
            big = {name: ones[way][name] * scale for name in
                   ("bytes", "server_cpu_s", "target_cpu_s")}
            big["rest"] = ones[way]["rest"]
            # The operator does not provide the CPU of a bucket.
            if way == "bucket":
                big["server_cpu_s"] = 0
            at_target = big["target_cpu_s"] / CORES
            hours.append(max(at_target, model(
                targets, big, TARGET_LINK,
                SOURCE_LINK if way == "source" else 0, CORES, False)) / 3600)
        print("| %d | %.1f | %.1f |" % (targets, *hours))
    return report.at_most(rows)
