"""What every benchmark reports: progress, one JSON file, tables."""

import json
import os
import shlex
import sys

from harness import bars


def say(text):
    """Prints progress to standard error: standard output has the tables."""
    print(text, file=sys.stderr, flush=True)


def not_met(problems):
    """Prints the goals that were missed; returns the exit code."""
    for problem in problems:
        say("NOT MET: " + problem.replace("\n", " "))
    return 1 if problems else 0


def goals(rows):
    """Prints a table of (goal, found, met); returns the exit code."""
    print("\n| Goal | Found | Met |\n|---|---|---|")
    for goal, found, met in rows:
        print("| %s | %s | %s |" % (goal, found, "yes" if met else "**no**"))
    return not_met(["%s: %s" % (goal, found) for goal, found, met in rows
                    if not met])


def write_json(path, document, private=None):
    """Writes indented JSON, with each (long) member of "runs" on one line.

    `private` maps this machine's paths to the texts that replace them.
    """
    document = dict(document)
    runs = document.pop("runs", [])
    text = json.dumps(document, indent=1, sort_keys=True)[:-2]
    text += ',\n "runs": [\n%s]\n}\n' % ",\n".join(
        json.dumps(run, sort_keys=True) for run in runs)
    for real, shown in (private or {}).items():
        text = text.replace(real, shown)
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".new", path)


def command_text(program, words):
    """Returns the command without options that contain this machine's paths."""
    shown = [program]
    skip = False
    for word in words:
        if not skip and word.split("=")[0] not in (
                "--workdir", "--build", "--sstferry", "--out"):
            shown.append(shlex.quote(word))
            continue
        skip = not skip and "=" not in word
    return " ".join(shown)


def median(summary, field, scale=1.0):
    if field not in summary:
        return "-"
    return "%.*f" % (2 if scale == 1 else 1, summary[field]["median"] * scale)


def spread(summary):
    if "seconds" not in summary:
        return "-"
    return "%.2f-%.2f" % (summary["seconds"]["min"], summary["seconds"]["max"])


def peak(summary, *roles):
    values = [summary["peak_rss_bytes"][r] for r in roles
              if r in summary["peak_rss_bytes"]]
    return "%.0f" % (max(values) / 2**20) if values else "-"


def machine_text(machine):
    changed = " with uncommitted changes" if machine["uncommitted_changes"] \
        else ""
    return ("%s cores of %s, %.0f GiB, %s, kernel %s, %s, RocksDB %s; commit "
            "%s%s, %s" % (
                machine["cores"], machine["cpu"],
                machine["memory_kib"] / 2**20, machine["distribution"],
                machine["kernel"], machine["file_system"], machine["rocksdb"],
                machine["commit"], changed, machine["date"]))


def at_most(rows):
    """Prints a table of (what, value, limit); returns the exit code."""
    return goals([("%s: at most %g" % (what, limit), "%.3f" % value,
                   value <= limit) for what, value, limit in rows])


TABLE_HEAD = (
    "| Contender | Seconds (median) | Min-max | MB/s | Times `put` | "
    "CPU s | CPU us/entry | Peak RSS source | target | Levels | Failed |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|\n")


def table(database, summaries):
    content = database.content
    mine = [s for s in summaries if s["database"] == database.name]
    base = [s["seconds"]["median"] for s in mine
            if s["contender"] == "put" and "seconds" in s]
    text = "%s: %d entries, %.0f MB of keys and values, %d files, " \
        "levels %s\n\n" % (database.name, content["entries"],
                           content["key_value_bytes"] / 1e6, content["files"],
                           json.dumps(content["levels"]))
    text += TABLE_HEAD
    for s in sorted(mine, key=lambda s: s.get("seconds", {}).get("median",
                                                                  1e9)):
        times = "%.1f" % (base[0] / s["seconds"]["median"]) \
            if base and "seconds" in s else "-"
        levels = json.dumps(s["levels"]).strip("{}").replace('"', "") \
            if "levels" in s else "-"
        text += "| %s |\n" % " | ".join([
            s["contender"], median(s, "seconds"), spread(s),
            median(s, "payload_bytes_per_second", 1e-6), times,
            median(s, "cpu_seconds"), median(s, "cpu_us_per_entry"),
            peak(s, "source", "both") + " MiB",
            peak(s, "target", "both") + " MiB", levels,
            "%d of %d" % (s["failed"], s["runs"])])
    return text


def contest_text(session):
    text = ""
    for database in session.databases:
        text += table(database, session.summaries()) + "\n"
    text += bars.as_text(bars.judge(session))
    for name, reason in session.missing.items():
        text += "Not run: %s (%s).\n" % (name, reason)
    return text
