"""Questions about sstferry alone: durability, memory, a live source."""

import csv
import json
import os
import shutil
import statistics
import time

from harness.contenders import missing_program
from harness.process import Failed, Process

MEMORY_BOUND_BYTES = 192 << 20
DURABILITY_SHARE = 0.8


def need_sstferry(session):
    reason = missing_program("sstferry", session.settings)
    if reason:
        raise SystemExit("this question needs sstferry: " + reason)


def summary_of(session, database, contender):
    for summary in session.summaries():
        if (summary["database"], summary["contender"]) == (database,
                                                           contender):
            return summary
    return {}


def durability(session):
    """Compares a sync of every chunk with one sync at the end."""
    need_sstferry(session)
    settings = session.settings
    problems = []
    shares = {}
    for value in settings.value_sizes:
        database = session.make_database("16+%d" % value, "--value-bytes",
                                         value, "--bytes",
                                         settings.payload_bytes)
        names = ["sstferry-durability-chunk", "sstferry-durability-none"]
        session.compete(database, names, settings.repeat)
        shutil.rmtree(database.path)
        both = [summary_of(session, database.name, n) for n in names]
        if all("seconds" in s for s in both):
            share = (both[1]["seconds"]["median"] /
                     both[0]["seconds"]["median"])
            shares[database.name] = share
            if share < DURABILITY_SHARE:
                problems.append("%s: chunk is only %.2f of none" % (
                    database.name, share))
    return {"chunk_rate_over_none": shares, "problems": problems}


def memory(session):
    """Measures peak RSS for --bytes and for ten times as much, with 4 lanes."""
    need_sstferry(session)
    settings = session.settings
    problems = []
    peaks = {}
    for size in (settings.payload_bytes, 10 * settings.payload_bytes):
        name = "%.1fGB" % (size / 1e9)
        database = session.make_database(name, "--value-bytes", 256,
                                         "--bytes", size)
        session.compete(database, ["sstferry"], settings.repeat)
        shutil.rmtree(database.path)
        peaks[name] = summary_of(session, name, "sstferry").get(
            "peak_rss_bytes", {})
        for role, found in peaks[name].items():
            if found > MEMORY_BOUND_BYTES:
                problems.append("%s %s: %.0f MiB, at most %d allowed" % (
                    name, role, found / 2**20, MEMORY_BOUND_BYTES >> 20))
    return {"peak_rss_bytes": peaks, "problems": problems}


def during(rows, spans):
    """Returns the rows whose second is mostly in one of the spans."""
    return [r for r in rows
            if any(begin <= float(r["unix_time"]) + 0.5 < end
                   for begin, end in spans)]


def phase_figures(rows):
    """Returns the median and the worst second of a phase."""
    if not rows:
        return {}
    out = {"seconds": len(rows)}
    for column in ("p50_us", "p99_us", "p999_us", "max_us"):
        values = [float(r[column]) for r in rows]
        out[column] = {"median": statistics.median(values),
                       "worst": max(values)}
    return out


def source_latency(session, rates=("none", None, "100M"), phase_seconds=30):
    """Measures p99 of a live source alone, and during pulls at several rates.

    The phases take turns until each has lasted phase_seconds, so that a slow
    minute of the machine affects all of them.
    """
    need_sstferry(session)
    settings = session.settings
    database = session.make_database(
        "live", "--value-bytes", 256, "--no-compact", "--bytes",
        settings.payload_bytes)
    scratch = session.scratch("live")
    rows_path = os.path.join(scratch, "latency.csv")
    owner = Process("owner", [
        session.tool("source_latency"), "--db", database.path, "--rate", 2000,
        "--csv", rows_path], scratch)
    names = {rate: "pull" if rate is None else "pull --max-rate " + rate
             for rate in rates}
    phases = {name: [] for name in ["alone", *names.values()]}
    problems = []

    def lacks_seconds(name):
        return sum(end - begin for begin, end in phases[name]) < phase_seconds

    try:
        owner.line_starting("serving")
        while not problems and any(map(lacks_seconds, phases)):
            time.sleep(2)
            if lacks_seconds("alone"):
                begin = time.time()
                time.sleep(5)
                phases["alone"].append((begin, time.time()))
            for rate, name in names.items():
                if not lacks_seconds(name):
                    continue
                span, error = pull_live(session, database.path, rate)
                phases[name].append(span)
                if error:
                    problems.append("%s: %s" % (name, error))
                time.sleep(2)
    finally:
        owner.stop(60)
    if owner.exit_code != 0:
        raise Failed("source_latency: " + owner.error_text())
    with open(rows_path, encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    answers = {name: phase_figures(during(rows, spans))
               for name, spans in phases.items()}
    return {"phases": answers, "rows": rows, "owner": owner.facts(),
            "problems": problems}


def pull_live(session, path, rate):
    """Pulls once from a database that another process has open.

    Returns (begin, end), and "" or an error. Removes the target only after
    the end is recorded, because freeing its memory keeps a CPU busy for a
    while.
    """
    settings = session.settings
    scratch = session.scratch("pull")
    server = Process("source", [
        settings.sstferry, "serve", "--db", "live=" + path, "--listen",
        "127.0.0.1:0", "--once"], scratch)
    begin = end = time.time()
    try:
        address = server.line_starting("listening on ")
        argv = [settings.sstferry, "pull", "sst://%s/live" % address,
                os.path.join(scratch, "target"), "--lanes", settings.lanes,
                "--method", "ingest", "--json", "--progress", "never"]
        begin = time.time()
        client = Process("target",
                         argv + (["--max-rate", rate] if rate else []),
                         scratch)
        failed = client.wait(settings.deadline) != 0
        end = time.time()
        return (begin, end), client.error_text() if failed else ""
    except Failed as error:
        return (begin, end), str(error)
    finally:
        server.stop()
        shutil.rmtree(scratch)


def as_text(question, answers):
    text = ""
    if question == "source-latency":
        text += ("A process owns the database and serves 2000 operations/s, "
                 "90 % reads; latency from the intended send time, in "
                 "microseconds, median second (worst second).\n\n"
                 "| Phase | Seconds | p50 | p99 | p99.9 |\n"
                 "|---|---|---|---|---|\n")
        for name, phase in answers["phases"].items():
            if not phase:
                text += "| %s | too short to tell | - | - | - |\n" % name
                continue
            text += "| %s | %d | %s |\n" % (name, phase["seconds"], " | ".join(
                "%.0f (%.0f)" % (phase[c]["median"], phase[c]["worst"])
                for c in ("p50_us", "p99_us", "p999_us")))
    elif question == "memory":
        text += "| Database | Peak RSS source | target |\n|---|---|---|\n"
        for name, peaks in answers["peak_rss_bytes"].items():
            text += "| %s | %s |\n" % (name, " | ".join(
                "%.0f MiB" % (peaks.get(r, 0) / 2**20)
                for r in ("source", "target")))
    else:
        text += "```\n%s\n```\n" % json.dumps(answers, indent=1,
                                               sort_keys=True)
    return text
