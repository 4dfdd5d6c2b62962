"""PNG plots through gnuplot (Debian: gnuplot-nox)."""

import os
import shutil
import subprocess

PREAMBLE = """set terminal pngcairo size 1000,560 font "sans,11"
set output "%s"
set title "%s"
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
"""
# Each contender has the same colour in every plot.
COLOURS = {
    "sstferry": "#0044bb", "sstferry-local": "#66a3ff",
    "sstferry-rebuilt": "#00a0a0", "sstferry-tls": "#8e44ad",
    "sstferry-clone": "#111199", "sstferry-clone-tls": "#c39bd3",
    "put": "#d62728", "rsync": "#ff9900", "backup-engine": "#e6c200",
    "ldb": "#8c564b", "store-and-forward": "#e377c2",
    "secondary": "#8c564b", "updates": "#d62728", "follow": "#0044bb",
    "ceiling-buffered": "#222222", "ceiling-direct": "#999999"}
OTHER_COLOUR = "#2ca02c"


def available():
    return shutil.which("gnuplot") is not None


def colour(contender):
    return COLOURS.get(contender, OTHER_COLOUR)


def gnuplot(script):
    done = subprocess.run(["gnuplot"], input=script, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise OSError("gnuplot: " + done.stderr)


def bars(path, title, summaries):
    """Plots the median MB/s of each contender, a group of bars per database."""
    databases = list(dict.fromkeys(s["database"] for s in summaries))
    names = list(dict.fromkeys(s["contender"] for s in summaries))
    rates = {(s["database"], s["contender"]):
             s["payload_bytes_per_second"] for s in summaries
             if "payload_bytes_per_second" in s}
    rows = []
    for database in databases:
        cells = []
        for name in names:
            rate = rates.get((database, name))
            cells.append("%.2f %.2f %.2f" % tuple(
                rate[k] / 1e6 for k in ("median", "min", "max"))
                         if rate else "0 0 0")
        rows.append('"%s" %s' % (database, " ".join(cells)))
    script = PREAMBLE % (path, title)
    script += "$data << EOD\n%s\nEOD\n" % "\n".join(rows)
    script += """set style data histogram
set style histogram errorbars gap 2 lw 1
set style fill solid 0.85 border -1
set ylabel "keys and values, MB/s (median, min-max)"
set yrange [0:*]
set key outside right top
"""
    plots = []
    for i, name in enumerate(names):
        column = 2 + 3 * i
        plots.append('$data using %d:%d:%d:xtic(1) lc rgb "%s" title "%s"' % (
            column, column + 1, column + 2, colour(name), name))
    gnuplot(script + "plot " + ", \\\n  ".join(plots) + "\n")


def looks(path, title, runs):
    """Plots how often a read of a copy ("look") found it wrong, and the age of
    the data that it found, one group of bars per load. `runs`: those of
    benchmarks/standbys."""
    loads = list(dict.fromkeys(run["load"] for run in runs))
    names = list(dict.fromkeys(run["contender"] for run in runs))
    found = {(run["load"], run["contender"]): run for run in runs}
    columns = (
        ("looks that were wrong, %",
         lambda run: 100 * run["wrong"] / max(1, run["looks"])),
        ("age of what a look saw, p95, ms", lambda run: run["age_ms_p95"]))
    script = PREAMBLE % (path, title)
    script += ("set multiplot layout 1,2 title \"%s\"\nunset title\n"
               "set style data histogram\nset style histogram clustered gap 2\n"
               "set style fill solid 0.85 border -1\nset key below\n"
               "set yrange [0:*]\n" % title)
    for number, (label, value) in enumerate(columns):
        rows = ['"%s" %s' % (load, " ".join(
            "%.3f" % value(found[load, name]) if (load, name) in found else "0"
            for name in names)) for load in loads]
        script += "$data%d << EOD\n%s\nEOD\nset ylabel \"%s\"\n" % (
            number, "\n".join(rows), label)
        script += "plot " + ", \\\n  ".join(
            '$data%d using %d:xtic(1) lc rgb "%s" title "%s"' % (
                number, 2 + i, colour(name), name)
            for i, name in enumerate(names)) + "\n"
    gnuplot(script + "unset multiplot\n")


def rate_points(series, window=1.0):
    """Returns (seconds, MB/s) over a sliding window of (seconds, bytes)."""
    points = []
    start = 0
    for now, total in series:
        while now - series[start][0] > window and start + 1 < len(series):
            start += 1
        then, before = series[max(0, start - 1)]
        if now - then >= 0.1:  # a shorter time gives no useful rate
            grown = max(0.0, total - before)
            points.append((now, grown / (now - then) / 1e6))
    return points


def rates(path, title, runs):
    """Plots target bytes per second over time, one line per contender. The time
    axis ends with the second slowest; the key shows the time of the slowest."""
    script = PREAMBLE % (path, title)
    plots = []
    ends = sorted(run["series"][-1][0] for run in runs if run["series"])
    end = ends[-2] * 1.05 if len(ends) > 1 else 0
    for i, run in enumerate(runs):
        points = rate_points(run["series"])
        name = run["contender"]
        if end and points and points[-1][0] > end:
            name += ", until %.0f s" % points[-1][0]
        if len(points) < 2:
            continue
        script += "$run%d << EOD\n%s\nEOD\n" % (
            i, "\n".join("%.3f %.2f" % p for p in points))
        plots.append(
            '$run%d using 1:2 with lines lw 2 lc rgb "%s" title "%s"' % (
                i, colour(run["contender"]), name))
    if not plots:
        return False
    script += """set xlabel "seconds"
set ylabel "bytes arriving in the target's directory, MB/s"
set yrange [0:*]
set key outside right top
"""
    script += "set xrange [0:%s]\n" % (end or "*")
    gnuplot(script + "plot " + ", \\\n  ".join(plots) + "\n")
    return True


def draw_all(session, directory, stem):
    """Returns the number of plots that it draws; 0 without gnuplot."""
    if not available():
        return 0
    drawn = 0
    summaries = session.summaries()
    if summaries:
        bars(os.path.join(directory, stem + "-contenders.png"),
             "Contenders side by side", summaries)
        drawn += 1
    for database in session.databases:
        last = {}
        for run in session.runs:
            # Omits clones: they set the sizes of files before the bytes arrive.
            if run["database"] == database.name and not run["error"] \
                    and "clone" not in run["contender"]:
                last[run["contender"]] = run
        path = os.path.join(directory, "%s-rate-%s.png" % (stem, database.name))
        drawn += bool(last and rates(path, "Rate over time, %s" % database.name,
                                     list(last.values())))
    return drawn
