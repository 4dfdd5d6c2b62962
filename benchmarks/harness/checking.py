"""The cost of checks: a verify beside a pull, and digests in a pull's CPU."""

import os
import shutil
import statistics
import subprocess

from harness.process import Failed, Process, run_to_end
from harness.questions import need_sstferry, summary_of
from harness.session import Database

PULL = "sstferry-local-rebuilt"
DIGEST_SHARE = 0.05
SAMPLES_PER_SECOND = 2000


def spread(values):
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values)}


def verify(session):
    """Measures a verify of a database and its copy, in turn with a pull.

    The pull rebuilds chunks. Both read directories on both sides, with
    everything in the page cache.
    """
    need_sstferry(session)
    settings = session.settings
    answers = {}
    problems = []
    for value in settings.value_sizes:
        database = session.make_database("16+%d" % value, "--value-bytes",
                                         value, "--bytes",
                                         settings.payload_bytes)
        copy = Database("copy", os.path.join(settings.workdir, "copy"), None)
        run_to_end("copy", [
            settings.sstferry, "pull", database.path, copy.path, "--method",
            "ingest", "--progress", "never"], session.scratch("verify"),
                   settings.deadline)
        runs = []
        for repeat in range(1, settings.repeat + 1):
            session.run_once(database, PULL, repeat)
            session.settle(copy)
            session.settle(database)
            runs.append(verify_once(session, database, copy))
            session.say("%s verify #%d: %.2f s, CPU %.2f s" % (
                database.name, repeat, runs[-1]["seconds"],
                runs[-1]["cpu_seconds"]))
        shutil.rmtree(database.path)
        shutil.rmtree(copy.path)
        pulled = summary_of(session, database.name, PULL)
        if "seconds" not in pulled:
            continue  # all of its runs failed, which the session reports
        ratio = (statistics.median(r["seconds"] for r in runs) /
                 pulled["seconds"]["median"])
        answers[database.name] = {
            "pull": {f: pulled[f] for f in ("seconds", "cpu_seconds")},
            "verify": {f: spread([r[f] for r in runs])
                       for f in ("seconds", "cpu_seconds")},
            "peak_rss_bytes": max(r["peak_rss_bytes"] for r in runs),
            "ratio": ratio,
            "bytes_per_side": database.content["key_value_bytes"]}
        if ratio > 1:
            problems.append("%s: a verify takes %.2f times its rebuilt pull" %
                            (database.name, ratio))
    return {"verify": answers, "problems": problems}


def verify_once(session, database, copy):
    settings = session.settings
    process = run_to_end("verify", [
        settings.sstferry, "verify", database.path, copy.path, "--lanes",
        settings.lanes, "--json", "--progress", "never"],
                         session.scratch("verify"), settings.deadline)
    facts = process.facts()
    if facts["report"]["entries_right"] != database.content["entries"]:
        raise Failed("verify did not read every entry of the copy")
    return {"seconds": process.ended_at - process.started_at,
            "cpu_seconds": facts["cpu_user_seconds"] +
            facts["cpu_system_seconds"],
            "peak_rss_bytes": facts["peak_rss_bytes"]}


def digest(session):
    """Measures the share of XXH3 in the CPU of both sides of a pull, by perf.

    In a rebuilt pull, libxxhash computes only the digests of frames.
    """
    need_sstferry(session)
    if shutil.which("perf") is None:
        raise SystemExit("this question needs perf (linux-perf)")
    settings = session.settings
    answers = {}
    problems = []
    for value in settings.value_sizes:
        database = session.make_database("16+%d" % value, "--value-bytes",
                                         value, "--bytes",
                                         settings.payload_bytes)
        shares = []
        for repeat in range(1, settings.repeat + 1):
            session.settle(database)
            shares.append(digest_once(session, database))
            session.say("%s #%d: %.2f %% of CPU" % (database.name, repeat,
                                                    100 * shares[-1]))
        answers[database.name] = spread(shares)
        if answers[database.name]["median"] > DIGEST_SHARE:
            problems.append("%s: digests take %.1f %% of CPU" % (
                database.name, 100 * answers[database.name]["median"]))
        shutil.rmtree(database.path)
    return {"share_of_cpu": answers, "problems": problems}


def digest_once(session, database):
    settings = session.settings
    scratch = session.scratch("digest")

    def perf(role):
        return ["perf", "record", "-q", "-F", SAMPLES_PER_SECOND, "-o",
                os.path.join(scratch, role + ".perf"), "--",
                settings.sstferry]
    server = Process("source", perf("source") + [
        "serve", "--db", "bench=" + database.path, "--listen", "127.0.0.1:0",
        "--once"], scratch)
    client = None
    try:
        address = server.line_starting("listening on ")
        client = Process("target", perf("target") + [
            "pull", "sst://%s/bench" % address,
            os.path.join(scratch, "target"), "--lanes", settings.lanes,
            "--method", "ingest", "--json", "--progress", "never"], scratch)
        for process in (client, server):
            if process.wait(settings.deadline) != 0:
                raise Failed("%s: %s" % (process.role, process.error_text()))
    finally:
        for process in (client, server):
            if process is not None:
                process.stop()
    both = {p.role: samples(os.path.join(scratch, p.role + ".perf"))
            for p in (server, client)}
    all_samples = sum(sum(found.values()) for found in both.values())
    of_digests = {role: sum(count for dso, count in found.items()
                            if dso.startswith("libxxhash"))
                  for role, found in both.items()}
    if all_samples == 0:
        raise Failed("perf took no sample")
    return sum(of_digests.values()) / all_samples


def samples(path):
    """Returns CPU time, in perf's own units, by library."""
    text = subprocess.run(
        ["perf", "report", "-i", path, "--stdio", "--sort", "dso",
         "--show-total-period", "-t", ","], check=True, capture_output=True,
        text=True).stdout
    found = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if not line.startswith("#") and len(words) == 3:
            found[words[2]] = found.get(words[2], 0) + int(words[1])
    return found


def as_text(question, answers):
    if question == "verify":
        text = ("Both sides are directories, in the page cache; a rebuilt "
                "pull and a verify of its result in turn.\n\n"
                "| Database | Pull s | Verify s | Min-max | Ratio | "
                "Pull CPU s | Verify CPU s | MB/s of each side | Peak RSS |\n"
                "|---|---|---|---|---|---|---|---|---|\n")
        for name, found in answers["verify"].items():
            seconds = found["verify"]["seconds"]
            text += "| %s | %.2f | %.2f | %.2f-%.2f | %.2f | %.2f | %.2f | " \
                "%.0f | %.0f MiB |\n" % (
                    name, found["pull"]["seconds"]["median"],
                    seconds["median"], seconds["min"], seconds["max"],
                    found["ratio"], found["pull"]["cpu_seconds"]["median"],
                    found["verify"]["cpu_seconds"]["median"],
                    found["bytes_per_side"] / 1e6 / seconds["median"],
                    found["peak_rss_bytes"] / 2**20)
    else:
        text = ("Share of frame digests (XXH3) in the CPU time of source and "
                "target together, by sampling; at most %.0f %%.\n\n"
                "| Pull | Median | Min-max |\n|---|---|---|\n" %
                (100 * DIGEST_SHARE))
        for name, found in answers["share_of_cpu"].items():
            text += "| %s | %.2f %% | %.2f-%.2f %% |\n" % (
                name, 100 * found["median"], 100 * found["min"],
                100 * found["max"])
    return text
