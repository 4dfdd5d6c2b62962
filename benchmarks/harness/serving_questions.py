"""The one window in which a refresh blocks writes, and ten nights in a row."""

import os
import shutil
import statistics

from harness.process import run_to_end
from harness.served import blocked_window, phase
from harness.serving_delta import sst_files, written_by

FILES = (100, 300, 1000, 3000)
MAX_WINDOW_MICROS = 50_000
# Parts are smaller than a chunk: the chunk size divided by the mean file size.
CHUNK_OVER_FILE = 1.6
NIGHTS = 10
MAX_GET_RATIO = 1.1
MAX_DISK_RATIO = 1.15
# Shares of the database that one night may write.
MAX_WRITTEN_MEDIAN = 0.1
MAX_WRITTEN = 0.25


def window(world):
    """Measures the heartbeat's longest Put beside one ingestion of N files."""
    settings = world.settings
    world.make_source()
    world.seed()
    points = []
    for files in settings.files_list:
        runs = []
        for repeat in range(1, settings.repeat + 1):
            run = window_once(world, files)
            runs.append(run)
            world.say("%d files #%d: blocked %.1f ms, call %.1f ms" % (
                run["files"], repeat, run["blocked_us"] / 1e3,
                run["call_us"] / 1e3))
        points.append({
            "files_asked": files,
            "files": statistics.median(r["files"] for r in runs),
            **{key: {"median": statistics.median(r[key] for r in runs),
                     "max": max(r[key] for r in runs)}
               for key in ("blocked_us", "call_us", "idle_p999_us")}})
    problems = ["%d files: writes were blocked for %.0f ms" % (
        p["files"], p["blocked_us"]["median"] / 1e3) for p in points
                if p["blocked_us"]["median"] > MAX_WINDOW_MICROS]
    return {"answers": points, "problems": problems}


def window_once(world, files):
    settings = world.settings
    world.change_anew()  # a change in each part
    with world.server() as (_, url):
        run = world.serve(
            "window %d" % files, "--source", url, "--chunk-bytes",
            max(65536,
                int(CHUNK_OVER_FILE * world.made["sst_bytes"] / files)),
            "--lanes", settings.lanes, "--rate", 1000, "--mix", "90/10",
            "--warm", 1, "--before", 3, "--after", 0)
    calls = run["ingest_calls"]
    return {"files": sum(call["files"] for call in calls),
            "blocked_us": blocked_window(run)[1],
            "call_us": run["refresh"]["write_blocked_micros"]["max"],
            "idle_p999_us": phase(run, "before")["heartbeat"]["p999_us"]}


def window_text(answers):
    text = ("A heartbeat's longest Put during the one IngestExternalFiles "
            "call of a refresh, with values in milliseconds; at most "
            "%d.\n\n| Files in the call | Blocked, median | max | The call "
            "itself, median | max | Heartbeat p99.9 before |\n"
            "|---|---|---|---|---|---|\n" % (MAX_WINDOW_MICROS // 1000))
    for one in answers:
        text += "| %d | %.1f | %.1f | %.1f | %.1f | %.2f |\n" % (
            one["files"], *[one[key][how] / 1e3
                            for key in ("blocked_us", "call_us")
                            for how in ("median", "max")],
            one["idle_p999_us"]["median"] / 1e3)
    return text


# ----- ten nights -----

def nights(world):
    """Refreshes several nights; compares each with a fresh copy."""
    settings = world.settings
    world.make_source()
    world.seed()
    fresh = os.path.join(settings.workdir, "fresh")
    rows = []
    for night in range(1, settings.nights + 1):
        world.change(generation=night, overwrite_permille=10,
                     delete_permille=5, insert_permille=5)
        before = sst_files(world.target)
        with world.server() as (_, url):
            report = world.pull(world.target, job="refresh", source=url)
        after = sst_files(world.target)
        written = written_by(report, before, after) / sum(after.values())
        shutil.rmtree(fresh, ignore_errors=True)
        world.pull(fresh, "--method", "ingest")
        both = run_to_end("gets", [
            world.tool("get_latency"), "--left", world.target, "--right",
            fresh], world.scratch, settings.deadline).json_report()
        rows.append(night_row(night, report, both, written))
        world.say(night_line(rows[-1]))
    shutil.rmtree(fresh, ignore_errors=True)
    problems = [text for row in rows for text in night_problems(row)]
    for key in ("p50", "p99"):
        middle = statistics.median(row[key + "_ratio"] for row in rows)
        if middle > MAX_GET_RATIO:
            problems.append("GET %s is %.2f times a fresh copy's" % (
                key, middle))
    written = [row["written_share"] for row in rows]
    for how, found, most in (
            ("median", statistics.median(written), MAX_WRITTEN_MEDIAN),
            ("most", max(written), MAX_WRITTEN)):
        if found > most:
            problems.append("%.1f %% of the database written in a night (%s, "
                            "at most %g %%)" % (100 * found, how, 100 * most))
    return {"answers": rows, "problems": problems}


def night_row(night, report, both, written):
    return {"night": night, "seconds": report["seconds"], "wire_bytes": report["wire_bytes"],
            "debt_bytes": report["compaction_debt_bytes"],
            "gets": both, "written_share": written,
            "p50_ratio": both["left_p50_us"] / both["right_p50_us"],
            "p99_ratio": both["left_p99_us"] / both["right_p99_us"],
            "disk_ratio": both["left_bytes"] / both["right_bytes"],
            "range_deletions": both["left_range_deletions"],
            "deletions": both["left_deletions"],
            "levels": both["left_levels"]}


def night_problems(row):
    found = []
    # Deletions of single keys stay in their deltas until these are merged.
    if row["range_deletions"]:
        found.append("night %d: %d range deletions are left" %
                     (row["night"], row["range_deletions"]))
    if row["disk_ratio"] > MAX_DISK_RATIO:
        found.append("night %d: %.2f of a fresh copy's disk" % (
            row["night"], row["disk_ratio"]))
    return found


def levels_text(levels):
    return ", ".join("%s: %d" % pair for pair in sorted(levels.items()))


def night_line(row):
    return "night %d: %.1f s, GET p50 %.2f, p99 %.2f, disk %.3f of a " \
        "fresh copy's; %d range deletions; levels %s" % (
            row["night"], row["seconds"], row["p50_ratio"], row["p99_ratio"],
            row["disk_ratio"], row["range_deletions"],
            levels_text(row["levels"]))


def nights_text(answers):
    text = ("Each night 1 % of the keys are overwritten, 0.5 % deleted and "
            "as many new ones written, at random; then the refresh with its "
            "compaction, and random GETs on the replica and on a copy "
            "that was pulled anew, in turn.\n\n"
            "| Night | Seconds | GET p50 us | fresh | p99 us | "
            "fresh | Disk / fresh | Written | Range deletions | Deletions | "
            "Levels |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
    for row in answers:
        gets = row["gets"]
        text += "| %d | %.1f | %s | %.3f | %.1f %% | %d | %d | %s |\n" % (
            row["night"], row["seconds"], " | ".join(
                "%.2f" % gets[key] for key in (
                    "left_p50_us", "right_p50_us", "left_p99_us",
                    "right_p99_us")), row["disk_ratio"],
            100 * row["written_share"], row["range_deletions"],
            row["deletions"],
            levels_text(row["levels"]))
    medians = [statistics.median(row[key] for row in answers)
               for key in ("p50_ratio", "p99_ratio")]
    written = [row["written_share"] for row in answers]
    return text + "\nMedian over the nights, replica / fresh copy: p50 " \
        "%.3f, p99 %.3f (at most %.1f). Written a night, of the database: " \
        "median %.1f %%, most %.1f %%.\n" % (
            *medians, MAX_GET_RATIO, 100 * statistics.median(written),
            100 * max(written))
