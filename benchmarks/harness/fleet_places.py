"""More targets than transfer slots at a source: how late does the last begin?

All pulls start at the same time over loopback, with --snapshot latest, each at
a rate at which it takes --place-seconds, so that they wait for slots and not
for this machine. A pull begins when the source has finished its first chunk.
With --before, another sstferry is measured in the same way, for comparison.
"""

import csv
import os
import shutil

from . import report
from .chunk_latency import finished_chunks
from .process import Failed, Process

MOST_BEGIN_RATIO = 1.5
# Chunk size of each pull.
CHUNK_BYTES = "64Ki"


def one_run(settings, sstferry, scratch):
    """Returns when the last target began and ended, and how often a target
    asked again for a slot."""
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    count = int(settings.targets.split(",")[-1])
    rate = int(settings.bytes / settings.place_seconds)
    source = Process("source", [
        sstferry, "serve", "--listen", "127.0.0.1:0", "--db",
        "x=" + settings.database, "--max-transfers", settings.places,
        "--max-per-address", "4096", "--progress", "never",
        "--share-snapshots", "5s", "--log-level", "debug", "--log-format",
        "json"], scratch)
    try:
        url = "sst://%s/x" % source.line_starting("listening on ")
        pulls = [Process("target%d" % i, [
            sstferry, "pull", "--snapshot", "latest", "--lanes", 1,
            "--compress", "none", "--method", "ingest", "--chunk-bytes",
            CHUNK_BYTES, "--max-rate", rate, url,
            os.path.join(scratch, "t%d" % i), "--json", "--progress", "never"],
            scratch) for i in range(count)]
        for pull in pulls:
            if pull.wait(settings.deadline) != 0:
                raise Failed("%s: %s" % (pull.role, pull.error_text()))
    finally:
        source.stop()
    reports = [pull.json_report() for pull in pulls]
    if len({r["snapshot_sequence"] for r in reports}) != 1:
        raise Failed("targets got different snapshots")
    begins = {}
    for (transfer, *_), at in finished_chunks(source.stderr_path).items():
        begins[transfer] = min(at, begins.get(transfer, at))
    begins = sorted(begins[r["transfer_id"]] for r in reports)
    asked = sum(open(pull.stderr_path, encoding="utf-8").read().count(
        "; asking again in ") for pull in pulls)
    return {"targets": count, "places": settings.places,
            "last_begin_s": begins[-1] - begins[0],
            "all_s": max(p.ended_at for p in pulls) -
                     min(p.started_at for p in pulls),
            "asked_per_target": asked / count,
            "cpu_s": source.cpu_seconds()}


def ask(settings, workdir, median):
    tools = {"this": settings.sstferry}
    if settings.before:
        tools["before"] = os.path.abspath(settings.before)
    rows = []
    for _ in range(settings.repeat):
        for name, sstferry in tools.items():
            rows.append({"sstferry": name, **one_run(
                settings, sstferry, os.path.join(workdir, "run"))})
            report.say(str(rows[-1]))
    os.makedirs(settings.out, exist_ok=True)
    with open(os.path.join(settings.out, "fleet-places.csv"), "w",
              encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    last = {name: median([row["last_begin_s"] for row in rows
                          if row["sstferry"] == name]) for name in tools}
    count = int(settings.targets.split(",")[-1])
    # Each slot serves its pulls one after the other.
    least = (count - 1) // settings.places * settings.place_seconds
    base = last.get("before", least)
    ratio = last["this"] / base
    return report.at_most([(
        "last of %d targets on %d places begins, over %s (%.1f s)" % (
            count, settings.places,
            "before" if settings.before else "without a gap", base),
        ratio, MOST_BEGIN_RATIO)])
