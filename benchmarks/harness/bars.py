"""The project's own goals, compared with a session's medians."""

# (contender, database, compared with, minimum factor by which it is faster)
TIMES = (("sstferry-clone", "live", "ceiling-direct", 0.9),
         ("sstferry-clone", "live", "rsync", 1.3),
         ("sstferry-rebuilt", "16+256", "put", 10.0),
         ("sstferry-rebuilt", "16+256", "rsync", 2.0),
         ("sstferry-rebuilt", "16+128", "put", 7.0),
         ("sstferry", "16+256", "ceiling-buffered", 0.8),
         ("sstferry", "16+1024", "ceiling-buffered", 0.8),
         ("sstferry", "16+256", "put", 15.0),
         ("sstferry", "16+1024", "put", 15.0),
         ("sstferry", "16+256", "rsync", 4.0),
         ("sstferry", "16+1024", "rsync", 4.0))
# Maximum CPU seconds of the source per GB of tables: for clones, and for
# `sstferry` with a compacted database.
SOURCE_CPU_PER_GB = {"sstferry": 0.9, "sstferry-clone": 0.9,
                     "sstferry-clone-tls": 1.3}
# (database, MB/s of keys and values)
FLOORS = (("16+256", 110.0), ("16+128", 80.0))
RSS_MIB = {"sstferry": 128, "sstferry-rebuilt": 192, "sstferry-clone": 128,
           "sstferry-clone-tls": 128}


def judge(session):
    """Returns [{bar, found, met}] for the measurements of this session."""
    summaries = {(s["database"], s["contender"]): s
                 for s in session.summaries() if "seconds" in s}
    own = {key: s for key, s in summaries.items() if key[1] in RSS_MIB}
    out = []

    def add(bar, found, met):
        out.append({"bar": bar, "found": found, "met": bool(met)})

    for name, database, other, times in TIMES:
        if (database, name) in own and (database, other) in summaries:
            found = (summaries[database, other]["seconds"]["median"] /
                     own[database, name]["seconds"]["median"])
            add("%s %s: at least %g times %s" % (database, name, times, other),
                "%.2f times" % found, found >= times)
    for database, floor in FLOORS:
        if (database, "sstferry-rebuilt") in own:
            rate = own[database, "sstferry-rebuilt"][
                "payload_bytes_per_second"]["median"] / 1e6
            add("%s sstferry-rebuilt: at least %g MB/s" % (database, floor),
                "%.0f MB/s" % rate, rate >= floor)
    for (database, name), summary in own.items():
        for role, peak in sorted(summary["peak_rss_bytes"].items()):
            add("%s %s: %s at most %d MiB" % (database, name, role,
                                              RSS_MIB[name]),
                "%.0f MiB" % (peak / 2**20), peak <= RSS_MIB[name] << 20)
        is_clone = name.startswith("sstferry-clone")
        if not is_clone:
            add("%s %s: no file in level 0" % (database, name),
                str(summary["levels"]), "0" not in summary["levels"])
        is_compacted = name == "sstferry" and database != "live" and \
            not database.endswith("not-compacted")
        if is_clone or is_compacted:
            sst_gb = (summary["target_bytes_per_second"]["median"] *
                      summary["seconds"]["median"] / 1e9)
            found = summary["source_cpu_seconds"] / sst_gb
            add("%s %s: source CPU at most %g s per GB" % (
                database, name, SOURCE_CPU_PER_GB[name]), "%.2f s" % found,
                found <= SOURCE_CPU_PER_GB[name])
    return out


def as_text(bars):
    if not bars:
        return ""
    text = "| Goal | Found | Met |\n|---|---|---|\n"
    for bar in bars:
        text += "| %s | %s | %s |\n" % (bar["bar"], bar["found"],
                                        "yes" if bar["met"] else "**no**")
    return text + "\n"
