"""The goals sstferry set itself, judged on a session's medians."""

# (database, compared with, at least so many times as fast)
TIMES = (("16+256", "put", 10.0), ("16+256", "rsync", 2.0),
         ("16+128", "put", 7.0))
# (database, MB/s of keys and values)
FLOORS = (("16+256", 110.0), ("16+128", 80.0))
RSS_MIB = 192


def judge(session):
    """[{bar, found, met}] for what this session measured."""
    summaries = {(s["database"], s["contender"]): s
                 for s in session.summaries() if "seconds" in s}
    own = {database: s for (database, name), s in summaries.items()
           if name == "sstferry"}
    out = []

    def add(bar, found, met):
        out.append({"bar": bar, "found": found, "met": bool(met)})

    for database, other, times in TIMES:
        if database in own and (database, other) in summaries:
            found = (summaries[database, other]["seconds"]["median"] /
                     own[database]["seconds"]["median"])
            add("%s: at least %g times %s" % (database, times, other),
                "%.1f times" % found, found >= times)
    for database, floor in FLOORS:
        if database in own:
            rate = own[database]["payload_bytes_per_second"]["median"] / 1e6
            add("%s: at least %g MB/s" % (database, floor),
                "%.0f MB/s" % rate, rate >= floor)
    for database, summary in own.items():
        for role, peak in sorted(summary["peak_rss_bytes"].items()):
            add("%s: %s at most %d MiB" % (database, role, RSS_MIB),
                "%.0f MiB" % (peak / 2**20), peak <= RSS_MIB << 20)
        add("%s: no file in level 0" % database, str(summary["levels"]),
            "0" not in summary["levels"])
    return out


def as_text(bars):
    if not bars:
        return ""
    text = "### Goals\n\n| Goal | Found | Met |\n|---|---|---|\n"
    for bar in bars:
        text += "| %s | %s | %s |\n" % (bar["bar"], bar["found"],
                                        "yes" if bar["met"] else "**no**")
    return text + "\n"
