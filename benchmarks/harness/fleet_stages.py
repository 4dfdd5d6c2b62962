"""The three stages of a pull, read, send and ingest, and how much they overlap.

For each target:
  read    seconds in which a lane of the source reads and builds (stage_seconds
          of the source: read_build)
  send    seconds that the target's link needs for the bytes on the wire
  ingest  seconds in which a lane of the target writes, checks, ingests and
          syncs (stage_seconds of the target)
If they overlap well, the total is little more than the slowest of the three.
"""

import csv
import os
import shutil

from . import report
from .chunk_latency import (IngestWatch, finished_chunks, latencies,
                            percentile)
from .fleet_links import address, inside, links
from .process import Failed, Process

MOST_OVER_SLOWEST = 1.15
MOST_P95_SECONDS = 0.5
MOST_P99_SECONDS = 1.0
LEAST_MEASURED = 0.99  # share of all chunks
INGEST_STAGES = ("stage_write", "check", "ingest", "sync")


def stages_of(report, bits_per_second):
    """Returns the seconds of one pull's stages, and its total."""
    seconds = report["stage_seconds"]
    stages = {
        "read_s": seconds["source"].get("read_build", 0),
        "send_s": report["wire_bytes"] * 8 / bits_per_second,
        "ingest_s": sum(seconds["target"].get(stage, 0)
                        for stage in INGEST_STAGES)}
    slowest = max(stages.values())
    stages["total_s"] = report["seconds"]
    stages["total_over_slowest"] = report["seconds"] / slowest
    return stages


def one_run(settings, count, method, scratch):
    """Runs all targets once. Returns a record with the target that overlaps
    least, and with the chunks of all targets."""
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    bits = settings.megabits * 1_000_000
    targets = [os.path.join(scratch, "t%d" % i) for i in range(count)]
    ingests = method == "ingest"
    watches = []
    with links(count, bits) as names:
        source = Process("source", inside(
            names[0], settings.sstferry, "serve", "--insecure", "--listen",
            "0.0.0.0:7420", "--db", "x=" + settings.database,
            "--max-per-address", "4096", "--progress", "never",
            "--log-level", "debug", "--log-format", "json"), scratch)
        try:
            source.line_starting("listening on ")
            watches = [IngestWatch(target) for target in targets if ingests]
            pulls = [Process("target%d" % i, inside(
                names[1 + i], settings.sstferry, "pull", "--snapshot",
                "latest", "--method", method, "--compress", "none",
                "sst://%s/x" % address(i), targets[i], "--json",
                "--progress", "never"), scratch) for i in range(count)]
            for pull in pulls:
                if pull.wait(settings.deadline) != 0:
                    raise Failed("%s: %s" % (pull.role, pull.error_text()))
        finally:
            ingested = [watch.stop() for watch in watches]
            source.stop()
    reports = [pull.json_report() for pull in pulls]
    worst = max((stages_of(report, bits) for report in reports),
                key=lambda stages: stages["total_over_slowest"])
    row = {"method": method, "targets": count}
    row.update(worst)
    row.update({"chunks": sum(r["chunks"] for r in reports), "measured": 0,
                "p50_s": 0.0, "p95_s": 0.0, "p99_s": 0.0})
    if ingests:
        finished = finished_chunks(source.stderr_path)
        values = sorted(
            value for report, times in zip(reports, ingested)
            for value in latencies(finished, report["transfer_id"], times))
        if len(values) < LEAST_MEASURED * row["chunks"]:
            raise Failed("%d of %d chunks were seen at both sides" %
                         (len(values), row["chunks"]))
        row.update({"measured": len(values),
                    "p50_s": percentile(values, 0.5),
                    "p95_s": percentile(values, 0.95),
                    "p99_s": percentile(values, 0.99)})
    for target in targets:
        shutil.rmtree(target)
    return row


def answers(points):
    """Yields (question, value, limit)."""
    for point in points:
        name = "%s, %d targets: " % (point["method"], point["targets"])
        yield (name + "total / slowest stage", point["total_over_slowest"],
               MOST_OVER_SLOWEST)
        if point["measured"]:
            yield (name + "finished to ingested, p95, s", point["p95_s"],
                   MOST_P95_SECONDS)
            yield (name + "finished to ingested, p99, s", point["p99_s"],
                   MOST_P99_SECONDS)


def ask(settings, workdir, summarise):
    rows = []
    for _ in range(settings.repeat):
        for method in settings.methods.split(","):
            for count in settings.targets.split(","):
                rows.append(one_run(settings, int(count), method,
                                    os.path.join(workdir, "run")))
                report.say(str(rows[-1]))
    points = summarise(rows)
    os.makedirs(settings.out, exist_ok=True)
    with open(os.path.join(settings.out, "fleet-stages.csv"), "w",
              encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(points[0]))
        writer.writeheader()
        writer.writerows(points)
    print("| method | targets | read s | send s | ingest s | total s | total "
          "/ slowest | chunks | p50 s | p95 s | p99 s |\n" + "|---" * 11 + "|")
    for p in points:
        latency = (" | ".join("%.3f" % p[name] for name in
                              ("p50_s", "p95_s", "p99_s"))
                   if p["measured"] else "- | - | -")
        print("| %s | %d | %.2f | %.2f | %.2f | %.2f | %.3f | %d | %s |" % (
            p["method"], p["targets"], p["read_s"], p["send_s"],
            p["ingest_s"], p["total_s"], p["total_over_slowest"],
            p["chunks"], latency))
    return report.at_most(answers(points))
