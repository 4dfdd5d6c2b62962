"""Plots latency over time with the refresh shaded, and the blocked window."""

import os

from harness import plot

# One row per line: (kind, column of the windows, title, colour, dash).
LINES = (
    ("get", 1, "get p50", "#9db8e8", 1), ("get", 2, "get p99", "#3d6fd1", 1),
    ("get", 3, "get p99.9", "#002a80", 1),
    ("scan", 3, "scan p99.9", "#2ca02c", 1),
    ("write", 2, "write p99", "#f0a070", 1),
    ("write", 3, "write p99.9", "#c8320a", 1),
    ("heartbeat", 4, "heartbeat max", "#777777", 3))
SHADES = {"during/prepare": "#eeeeee", "during/transfer": "#ffe9a8",
          "during/publish": "#ffb0b0", "during/compaction": "#d8efd0",
          "during/spinner": "#dddddd"}


def shading(run):
    text = ""
    number = 1
    for phase in run["phases"]:
        colour = SHADES.get(phase["name"])
        if colour is None or phase["seconds"] == 0:
            continue
        begin = phase["begin_seconds"]
        text += 'set object %d rect from %.3f, graph 0 to %.3f, graph 1 ' \
            'behind fc rgb "%s" fs solid noborder\n' % (
                number, begin, begin + phase["seconds"], colour)
        if phase["seconds"] > 0.04 * duration(run):
            text += 'set label %d "%s" at %.3f, graph 0.97 center ' \
                'font "sans,9" tc rgb "#555555"\n' % (
                    number, phase["name"].split("/")[1],
                    begin + phase["seconds"] / 2)
        number += 1
    return text


def duration(run):
    return max(one["begin_seconds"] + one["seconds"]
               for one in run["phases"])


def latencies(path, title, run):
    """Plots one run over time, without the first second of the warm-up."""
    end = duration(run)
    script = plot.PREAMBLE % (path, title)
    script += shading(run)
    script += 'set xlabel "seconds"\n' \
        'set ylabel "latency from the intended send time, microseconds"\n' \
        "set logscale y\nset yrange [5:*]\nset xrange [0:%.1f]\n" \
        "set format y '10^{%%T}'\nset grid xtics\n" \
        "set key outside right top\n" % end
    lines = []
    for kind, column, name, colour, dash in LINES:
        rows = ["%.1f %.1f" % (second + 0.5, row[column])
                for second, row in enumerate(run["windows"][kind])
                if row[0] > 0 and second > 0 and second < end]
        if len(rows) < 2:
            continue
        block = "$d%d" % len(lines)
        script += "%s << EOD\n%s\nEOD\n" % (block, "\n".join(rows))
        lines.append('%s using 1:2 with lines lw 2 dt %d lc rgb "%s" '
                     'title "%s"' % (block, dash, colour, name))
    for name in dict.fromkeys(one["name"] for one in run["phases"]):
        if name in SHADES:
            lines.append('keyentry with boxes fs solid border lc rgb '
                         '"#aaaaaa" fc rgb "%s" title "%s"' % (
                             SHADES[name], name.split("/")[1]))
    plot.gnuplot(script + "plot " + ", \\\n  ".join(lines) + "\n")


def window(path, points):
    script = plot.PREAMBLE % (
        path, "Writes blocked by one ingest call, over its files")
    script += "$d << EOD\n%s\nEOD\n" % "\n".join(
        "%d %s" % (p["files"], " ".join(
            "%.3f" % (p[key][how] / 1e3) for key in ("blocked_us", "call_us")
            for how in ("median", "max"))) for p in points)
    script += 'set xlabel "files in the call"\nset ylabel "milliseconds"\n' \
        "set logscale xy\nset grid xtics\nset key left top\n" \
        "set xtics (%s)\n" % ", ".join(str(int(p["files"])) for p in points)
    many = any(p[key]["median"] != p[key]["max"] for p in points
               for key in ("blocked_us", "call_us"))
    of = "median" if many else "one run"
    plots = ['$d using 1:2 with linespoints lw 2 pt 7 lc rgb "#0044bb" '
             'title "longest heartbeat, %s"' % of,
             '$d using 1:4 with linespoints lw 2 pt 7 lc rgb "#d62728" '
             'title "the call, %s"' % of,
             '50 with lines dt 2 lc rgb "#555555" title "bar: 50 ms"']
    if many:
        plots.append('$d using 1:3 with points pt 6 lc rgb "#0044bb" '
                     'title "longest heartbeat, max"')
    plot.gnuplot(script + "plot " + ", \\\n  ".join(plots) + "\n")


# Contender, state in which the source was left, title, colour, dash.
CURVES = (
    ("sstferry", "flushed", "refresh, new files", "#0044bb", 1),
    ("sstferry", "compacted", "refresh, compacted source", "#0044bb", 2),
    ("rsync", "flushed", "rsync, new files", "#ff9900", 1),
    ("rsync", "compacted", "rsync, compacted source", "#ff9900", 2),
    ("backup-engine", "flushed", "BackupEngine, new files", "#b59a00", 1),
    ("backup-engine", "compacted", "BackupEngine, compacted source",
     "#b59a00", 2),
    ("seed", "flushed", "seed, --method ingest", "#777777", 3))


def shares(path, title, unit, measure, scale, rows):
    """Plots a measure over the share of changed keys, by contender."""
    script = plot.PREAMBLE % (path, title)
    script += 'set xlabel "overwritten keys, %% of all"\nset ylabel "%s"\n' \
        "set logscale xy\nset grid xtics\nset key outside right top\n" \
        "set xtics (%s)\n" % (unit, ", ".join(
            '"%g" %g' % (s, s) for s in sorted({r["share"] for r in rows})))
    lines = []
    for contender, leave, name, colour, dash in CURVES:
        points = ["%g %.6f %.6f %.6f" % (row["share"], *(
            one[how] / scale for how in ("median", "min", "max")))
                  for row in rows if row["leave"] == leave
                  for one in [row["contenders"].get(contender, {}).get(measure)]
                  if one is not None and one["median"] > 0]
        if not points:
            continue
        block = "$d%d" % len(lines)
        script += "%s << EOD\n%s\nEOD\n" % (block, "\n".join(points))
        lines.append('%s using 1:2 with linespoints lw 2 pt 7 ps 0.7 dt %d '
                     'lc rgb "%s" title "%s"' % (block, dash, colour, name))
    plot.gnuplot(script + "plot " + ", \\\n  ".join(lines) + "\n")


def draw_shares(directory, rows):
    for measure, unit, scale, title in (
            ("wire_bytes", "MB", 1e6, "Bytes sent over the share of changes"),
            ("written_bytes", "MB", 1e6,
             "Bytes written over the share of changes"),
            ("seconds", "seconds", 1, "Time over the share of changes")):
        name = "serving-delta-%s.png" % measure.replace("_", "-")
        shares(os.path.join(directory, name), title, unit, measure, scale,
               rows)


def draw(directory, question, world, answers, shown):
    """Draws the plots of a question, if gnuplot is installed."""
    if not plot.available():
        return
    if question == "window":
        window(os.path.join(directory, "serving-window.png"), answers)
    if question == "delta" and world.settings.shares:
        draw_shares(directory, answers)
    for run in world.runs if question == "mixes" else []:
        if run["name"] in shown:
            latencies(os.path.join(directory, "serving-%s.png" % run[
                "name"].replace(" ", "-").replace("/", "_")),
                      "%s (read/insert/remove/update/scan), %.0f operations/s"
                      % (run["name"], run["load"]["rate_per_second"]), run)
