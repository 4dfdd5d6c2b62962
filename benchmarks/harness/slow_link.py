"""The effect of `pull --compress auto` on a slow link.

There are two databases: zstd shrinks the tables of one to a quarter; the other
is noise. Each is pulled with --compress none and auto in turn, --repeat times.
"""

import statistics

# Minimum rate of auto as a multiple of the rate of none, for compressible data.
TIMES = 3.0
# Maximum cost of auto for incompressible data: shares of the rate and of the
# wire bytes.
RATE_SHARE = 0.03
BYTES_SHARE = 0.001
MODES = ("none", "auto")


def one_run(record):
    report = record["target"]["report"]
    return {"seconds": record["seconds"],
            "wire_bytes": report["wire_bytes"],
            "sst_bytes": report["sst_bytes"],
            "compressed": report["compressed"],
            "cpu_seconds": {
                role: record[role]["cpu_user_seconds"] +
                record[role]["cpu_system_seconds"]
                for role in ("source", "target")}}


def measure(shaped, namespaces, name, noise_percent):
    """Returns all runs of one database and their medians."""
    shaped.make_database("--noise-percent", noise_percent)
    runs = {mode: [] for mode in MODES}
    for _ in range(shaped.settings.repeat):
        for mode in MODES:
            runs[mode].append(one_run(shaped.sstferry(
                namespaces, options=["--compress", mode])))
    middle = {mode: {key: statistics.median(run[key] for run in runs[mode])
                     for key in ("seconds", "wire_bytes")} for mode in MODES}
    best = max(runs["auto"], key=lambda run: run["compressed"]["frames"])
    before = best["compressed"]["bytes_before"]
    return {"name": name, "noise_percent": noise_percent, "runs": runs,
            "median": middle, "sst_bytes": best["sst_bytes"],
            "compressed_share": before / best["sst_bytes"],
            "ratio": before / best["compressed"]["bytes_after"]
                     if before else 1.0,
            "times": middle["none"]["seconds"] / middle["auto"]["seconds"],
            "more_bytes": middle["auto"]["wire_bytes"] /
                          middle["none"]["wire_bytes"] - 1}


def answer(shaped, link):
    settings = shaped.settings
    rate = settings.compress_rate * 1e6
    with link(rate) as namespaces:
        shrinks = measure(shaped, namespaces, "4:1", settings.noise_percent)
        noise = measure(shaped, namespaces, "noise", 100)
    problems = []
    if shrinks["times"] < TIMES:
        problems.append("4:1: %.2f times as fast, at least %g" % (
            shrinks["times"], TIMES))
    if not 3.8 <= shrinks["ratio"] <= 4.2:
        problems.append("4:1: the data shrinks to 1/%.2f" % shrinks["ratio"])
    if noise["times"] < 1 - RATE_SHARE:
        problems.append("noise: %.3f of the rate" % noise["times"])
    if noise["more_bytes"] > BYTES_SHARE:
        problems.append("noise: %.3f %% more bytes" %
                        (100 * noise["more_bytes"]))
    return {"rate_bytes_per_sec": rate, "databases": [shrinks, noise],
            "problems": problems}


def as_text(out):
    text = ("Link %.1f MB/s, `--compress auto` beside `none`, medians:\n\n"
            "| Data | none s | auto s | Times | none wire MB | auto wire MB | "
            "Compressed share | Ratio of it |\n|---|---|---|---|---|---|---|"
            "---|\n" % (out["rate_bytes_per_sec"] / 1e6))
    for one in out["databases"]:
        middle = one["median"]
        text += "| %s |\n" % " | ".join([
            one["name"],
            *["%.2f" % middle[mode]["seconds"] for mode in MODES],
            "%.3f" % one["times"],
            *["%.2f" % (middle[mode]["wire_bytes"] / 1e6) for mode in MODES],
            "%.2f" % one["compressed_share"], "%.2f" % one["ratio"]])
    return text
