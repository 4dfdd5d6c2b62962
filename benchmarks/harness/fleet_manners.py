"""How much do bad targets cost the good targets beside them, and the source?"""

import csv
import os
import shutil
import signal
import time

from . import report
from .fleet_links import address, inside, links
from .process import Failed, Process, run_to_end

MANNERS = ("stall", "slow", "reconnect")
RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "bad_manners.py")
RELAY_PORT = 7421
TOO_SLOW = 4  # exit code
LEAST_RATE = 0.95
# At most a quarter of a link's rate.
SLOW_BYTES_PER_SEC = 1_000_000
POLL_SECONDS = 0.05
MOST_RSS_MIB = 512
# Maximum time, beyond --timeout, until a stalled target is detached. A source
# checks once a second, and the first bytes fill the sockets for some seconds.
DETACH_SECONDS = 5


class Fleet:
    """One source, `good` good targets, and `bad` targets of each bad manner."""

    def __init__(self, settings, method, names, scratch):
        self.settings = settings
        self.method = method
        self.names = names  # names of namespaces, the source's first
        self.scratch = scratch
        self.source = Process("source", inside(
            names[0], settings.sstferry, "serve", "--insecure", "--listen",
            "0.0.0.0:7420", "--db", "x=" + settings.database,
            "--max-per-address", "4096", "--max-transfers", "256",
            "--timeout", "%ds" % settings.stall_timeout,
            "--progress", "never"), scratch)
        self.relays = {}
        self.slow_bytes_per_sec = min(SLOW_BYTES_PER_SEC,
                                      settings.megabits * 1_000_000 // 32)
        self.source.line_starting("listening on ")

    def target(self, i):
        return os.path.join(self.scratch, "t%d" % i)

    def pull(self, i, again=""):
        where = ("127.0.0.1:%d" % RELAY_PORT if i in self.relays
                 else address(i))
        return Process("target%d%s" % (i, again), inside(
            self.names[1 + i], self.settings.sstferry, "pull", "--snapshot",
            "latest", "--method", self.method, "--compress", "none",
            "sst://%s/x" % where, self.target(i), "--json", "--progress",
            "never"), self.scratch)

    def start_relay(self, i, manner):
        relay = Process("relay%d" % i, inside(
            self.names[1 + i], "python3", RELAY, manner, RELAY_PORT,
            address(i) + ":7420", self.slow_bytes_per_sec), self.scratch)
        self.relays[i] = relay
        relay.line_starting("relaying")

    def must_end(self, pull, code=0):
        if pull.wait(self.settings.deadline) != code:
            raise Failed("%s ended with %s: %s" % (
                pull.role, pull.exit_code, pull.error_text()))
        return pull.json_report()

    def stop(self):
        for relay in self.relays.values():
            relay.stop()
        self.source.stop()


def one_run(settings, method, bad, scratch):
    """Runs good targets alone, or beside `bad` targets of each bad manner."""
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    good = settings.good
    count = good + len(MANNERS) * bad
    with links(count, settings.megabits * 1_000_000) as names:
        fleet = Fleet(settings, method, names, scratch)
        try:
            manners = {good + kind * bad + i: manner
                       for kind, manner in enumerate(MANNERS)
                       for i in range(bad)}
            for i, manner in manners.items():
                fleet.start_relay(i, manner)
            bad_pulls = {i: fleet.pull(i) for i in manners}
            if bad:
                time.sleep(2)  # until the bad targets hold all that they can
            good_pulls = [fleet.pull(i) for i in range(good)]
            # The end of each pull is recorded when it ends, so all pulls are
            # polled.
            all_pulls = good_pulls + list(bad_pulls.values())
            while not all(pull.poll() for pull in good_pulls):
                if (time.monotonic() - good_pulls[0].started_at >
                        settings.deadline):
                    raise Failed("the pulls are not done by the deadline")
                for pull in all_pulls:
                    pull.poll()
                time.sleep(POLL_SECONDS)
            reports = [fleet.must_end(pull) for pull in good_pulls]
            detached = []
            for i, pull in bad_pulls.items():
                if manners[i] == "stall":
                    stalled = fleet.must_end(pull, TOO_SLOW)
                    detached.append(pull.ended_at - pull.started_at)
                os.kill(fleet.relays[i].pid, signal.SIGUSR1)
                if manners[i] == "stall":
                    resumed = fleet.must_end(fleet.pull(i, "-again"))
                    if resumed["transfer_id"] != stalled["transfer_id"]:
                        raise Failed("target%d did not resume" % i)
                    reports.append(resumed)
                else:
                    reports.append(fleet.must_end(pull))
        finally:
            fleet.stop()
    if len({r["snapshot_sequence"] for r in reports}) != 1:
        raise Failed("targets got different snapshots")
    digests = set()
    for i in range(count):
        digests.add(run_to_end("check", [
            os.path.join(settings.build, "benchmarks", "bench_check_database"),
            "--dir", fleet.target(i)], scratch,
                               settings.deadline).json_report()["digest"])
        shutil.rmtree(fleet.target(i))
    if len(digests) != 1:
        raise Failed("targets differ")
    rates = sorted(report["wire_bytes"] / (pull.ended_at - pull.started_at)
                   for report, pull in zip(reports, good_pulls))
    return {"method": method, "good": good, "bad": bad,
            "mean_mb_s": sum(rates) / good / 1e6,
            "slowest_mb_s": rates[0] / 1e6,
            "retries": sum(r.get("retries", 0) for r in reports),
            "detached_s": max(detached, default=0),
            "cpu_s": fleet.source.cpu_seconds(),
            "rss_mib": fleet.source.facts()["peak_rss_bytes"] / (1 << 20)}


def median(values):
    return sorted(values)[len(values) // 2]


def ask(settings, workdir):
    rows = []
    for _ in range(settings.repeat):
        for method in settings.methods.split(","):
            for bad in (0, settings.bad):
                rows.append(one_run(settings, method, bad,
                                    os.path.join(workdir, "run")))
                report.say(str(rows[-1]))
    os.makedirs(settings.out, exist_ok=True)
    with open(os.path.join(settings.out, "fleet-manners-%d.csv" %
                           settings.good), "w", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = []
    for method in settings.methods.split(","):
        def of(name, bad):
            return median([r[name] for r in rows if r["method"] == method and
                           (r["bad"] > 0) == bad])
        for what, value, holds in (
                ("mean rate beside the others / alone",
                 of("mean_mb_s", True) / of("mean_mb_s", False),
                 lambda v: v >= LEAST_RATE),
                ("rate of the slowest / alone",
                 of("slowest_mb_s", True) / of("slowest_mb_s", False),
                 lambda v: v >= LEAST_RATE),
                ("memory of the source, MiB", of("rss_mib", True),
                 lambda v: v <= MOST_RSS_MIB),
                ("seconds until a stalled one is detached",
                 of("detached_s", True),
                 lambda v: v <= settings.stall_timeout + DETACH_SECONDS)):
            found.append(("%s: %s" % (method, what), "%.3f" % value,
                          holds(value)))
    return report.goals(found)
