"""Measures bytes on the wire, bytes written, and time after small changes: a
refresh beside rsync of a checkpoint and an incremental BackupEngine backup."""

import csv
import json
import os
import shutil
import statistics
import time

from harness.contenders import RSYNC_CONFIG, await_port, free_port
from harness.process import Failed, Process, make_durable, run_to_end

SSTFERRY, SEED = "sstferry", "seed"
# SWAP: `sstferry swap` of a replica built from chunks. CLONE: `sstferry swap`
# of a clone. REFRESHED: `sstferry refresh` of a clone. SSTFERRY: a refresh of a
# replica built from chunks.
SWAP, CLONE, REFRESHED = "swap", "clone swap", "clone refresh"
# name: (method of the first pull, command of the nights)
SWAPS = {SWAP: ("ingest", "swap"), CLONE: ("clone", "swap"),
         REFRESHED: ("clone", "refresh")}
PEERS = ("rsync", "backup-engine")
MEASURES = ("seconds", "cpu_seconds", "wire_bytes", "written_bytes")

# (name, arguments of bench_change_database, more arguments of the pull, bars).
# The bars are: bytes on the wire and bytes written as shares of the target's
# SST bytes, the time as a share of a seed's, and the seconds below which the
# time does not matter. Cases with the same change follow each other (None: the
# change of the case before). The last of them has no arguments of the pull,
# because the next change is made to the replica that it leaves.
CASES = (
    ("nothing changed", {}, [], (0.01, 0, 1.0, 1.0)),
    ("1 % at random, flushed", {"how": "random"}, [], (0.05, 0.03, 1.0, 1.0)),
    ("1 % at random, in the WAL alone", {"how": "random", "leave": "wal"}, [],
     (0.05, 0.03, 1.0, 1.0)),
    ("1 % at random, 0.5 % deleted, 0.5 % new, compacted",
     {"how": "random", "delete_permille": 5, "insert_permille": 5,
      "leave": "compacted"}, [], (0.05, 0.06, 1.0, 0)),
    ("1 % new keys behind all others",
     {"overwrite_permille": 0, "append_permille": 10}, [],
     (0.03, 0.03, 1.0, 1.0)),
    ("1 % clustered", {"how": "clustered"}, [], (0.03, 0.03, 1.0, 1.0)),
    ("20 % at random, flushed, --compact none",
     {"how": "random", "overwrite_permille": 200}, ["--compact", "none"],
     (0.4, 0.6, 1.5, 0)),
    ("20 % at random, flushed", None, [], (0.4, 1.0, 1.5, 0)),
    ("all at random, flushed",
     {"how": "random", "overwrite_permille": 1000}, [], None),
)


# Bars of a swap of chunks: bytes on the wire, the time as a share of a seed's,
# and the seconds below which the time does not matter.
SWAP_BARS = {
    "nothing changed": (0.01, 1.0, 0.5),
    "1 % at random, flushed": (0.05, 1.0, 1.0),
    "1 % at random, 0.5 % deleted, 0.5 % new, compacted": (0.05, 1.0, 0),
}
# Seconds of the two renames and the writes around them.
MOST_EXCHANGE = 0.2


def sst_files(directory):
    """Returns sizes by inode."""
    return {(entry.inode(), entry.name): entry.stat().st_size
            for entry in os.scandir(directory) if entry.name.endswith(".sst")}


def written_by(report, before, after):
    """Returns an upper bound of the table bytes that a refresh wrote: the
    received bytes, and all new files unless these are the received ones."""
    new = sum(size for file, size in after.items() if file not in before)
    received = report["sst_bytes"]
    return new if abs(new - received) <= 0.01 * received else new + received


def copy_links(source, target):
    """Makes a copy with hard links to the files that are written only once."""
    shutil.rmtree(target, ignore_errors=True)
    for root, _, names in os.walk(source):
        below = os.path.join(target, os.path.relpath(root, source))
        os.makedirs(below)
        for name in names:
            link = os.link if name.endswith((".sst", ".blob")) \
                else shutil.copy2
            link(os.path.join(root, name), os.path.join(below, name))


class Replicas:
    """One source, and the copies of each contender."""

    def __init__(self, world, peers):
        self.world = world
        self.peers = peers
        self.root = world.settings.workdir
        self.bytes = 0   # size of the source's tables

    def path(self, *names):
        return os.path.join(self.root, *names)

    def has(self, contender):
        """Returns the directories that the contender keeps between changes."""
        return {SSTFERRY: [self.world.target],
                SWAP: [self.path("swapped")],
                CLONE: [self.path("cloned")],
                REFRESHED: [self.path("refreshed")],
                "rsync": [self.path("rsync")],
                "backup-engine": [self.path("backups")]}.get(contender, [])

    def keep(self, contender, keep_name):
        for path in self.has(contender):
            if os.path.isdir(path):
                copy_links(path, path + keep_name)

    def restore(self, contender, keep_name):
        for path in self.has(contender):
            shutil.rmtree(path, ignore_errors=True)
            if os.path.isdir(path + keep_name):
                copy_links(path + keep_name, path)

    def forget(self, contender, keep_name):
        for path in self.has(contender):
            shutil.rmtree(path + keep_name, ignore_errors=True)

    # ----- contenders: each moves the change once -----

    def run(self, contender, words):
        os.sync()
        if contender in (SSTFERRY, SEED, *SWAPS):
            return self._sstferry(contender, words)
        return self._rsync() if contender == "rsync" else self._backup()

    def _measured(self, started, processes, directory, **found):
        """Measures until the last process ended and `directory` is synced."""
        before_sync = time.monotonic()
        make_durable(directory)
        seconds = max(p.ended_at for p in processes) - started + \
            time.monotonic() - before_sync
        return {"seconds": seconds, **found}

    def _sstferry(self, contender, words):
        world = self.world
        target = self.path("seed") if contender == SEED else \
            self.has(contender)[0]
        shutil.rmtree(self.path("seed"), ignore_errors=True)
        before = sst_files(target) if os.path.isdir(target) else {}
        job = "pull" if contender == SEED or not before else \
            SWAPS[contender][1] if contender in SWAPS else "refresh"
        if contender in SWAPS:
            words = [] if job != "pull" else \
                ["--method", SWAPS[contender][0]]
        with world.server() as (server, url):
            started = time.monotonic()
            client = world.pull_to_end(target, *words, source=url, job=job)
            found = self._measured(started, [client], target)
        report = client.json_report()
        after = sst_files(target)
        for name in os.listdir(self.root):
            if name.startswith(os.path.basename(target) + ".old-"):
                shutil.rmtree(self.path(name))
        found.update(
            cpu_seconds=client.cpu_seconds() + server.cpu_seconds(),
            wire_bytes=report["wire_bytes"],
            written_bytes=written_by(report, before, after),
            target_bytes=sum(after.values()), report=report)
        return found

    def _rsync(self):
        world = self.world
        checkpoint = self.path("checkpoint")
        target = self.path("rsync")
        before = sst_files(target) if os.path.isdir(target) else {}
        port = free_port()
        config = os.path.join(world.scratch, "rsyncd.conf")
        with open(config, "w", encoding="utf-8") as out:
            out.write(RSYNC_CONFIG % (
                os.getuid(), os.getgid(),
                os.path.join(world.scratch, "rsyncd.pid"), checkpoint))
        server = Process("source", [
            "rsync", "--daemon", "--no-detach", "--config", config,
            "--address", "127.0.0.1", "--port", port], world.scratch)
        try:
            await_port(server, port)
            started = time.monotonic()
            copy_links(world.source, checkpoint)
            client = Process("rsync", [
                "rsync", "-a", "--delete", "--stats",
                "rsync://127.0.0.1:%d/bench/" % port, target + "/"],
                             world.scratch)
            if client.wait(world.settings.deadline) != 0:
                raise Failed("rsync: " + client.error_text())
            found = self._measured(started, [client], target)
        finally:
            server.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)
        with open(client.stdout_path, encoding="utf-8") as text:
            numbers = {line.split(":")[0]: line.split(":")[1]
                       for line in text if line.startswith("Total bytes")}
        after = sst_files(target)
        found.update(
            cpu_seconds=client.cpu_seconds() + server.cpu_seconds(),
            wire_bytes=sum(int(n.strip().replace(",", ""))
                           for n in numbers.values()),
            written_bytes=sum(size for file, size in after.items()
                              if file not in before))
        return found

    def _backup(self):
        world = self.world
        backups = self.path("backups")
        target = self.path("restored")
        shutil.rmtree(target, ignore_errors=True)
        before = sum(sizes(backups).values())
        started = time.monotonic()
        program = Process("both", [
            world.tool("backup_engine"), "--db", world.source, "--backup-dir",
            backups, "--target", target, "--lanes", world.settings.lanes],
                          world.scratch)
        if program.wait(world.settings.deadline) != 0:
            raise Failed("backup engine: " + program.error_text())
        found = self._measured(started, [program], target)
        added = sum(sizes(backups).values()) - before
        found.update(cpu_seconds=program.cpu_seconds(), wire_bytes=added,
                     written_bytes=added + sum(sst_files(target).values()))
        return found

    def check(self, contender):
        """Checks that the copy has exactly the source's entries."""
        path = self.path("restored") if contender == "backup-engine" else \
            self.has(contender)[0]
        found = [run_to_end("check", [
            self.world.tool("check_database"), "--dir", one],
                            self.world.scratch, self.world.settings.deadline
                            ).json_report() for one in (self.world.source,
                                                        path)]
        if found[0]["digest"] != found[1]["digest"]:
            raise Failed("%s: another digest than the source's" % contender)

    # ----- one row -----

    def measure(self, name, words, keeps):
        """Runs every contender in turn, several times; returns medians."""
        contenders = [SSTFERRY, SEED] + [
            p for p in (*SWAPS, *self.peers) if keeps]
        repeat = self.world.settings.repeat
        runs = {contender: [] for contender in contenders}
        for contender in contenders:
            self.keep(contender, ".before")
        for number in range(repeat):
            order = contenders[number % len(contenders):] + \
                contenders[:number % len(contenders)]
            for contender in order:
                self.restore(contender, ".before")
                runs[contender].append(self.run(contender, (
                    ["--method", "ingest"] if contender == SEED
                    else words)))
        for contender in contenders:
            if contender != SEED:
                self.check(contender)
            if not keeps:
                self.restore(contender, ".before")
            self.forget(contender, ".before")
        shutil.rmtree(self.path("seed"), ignore_errors=True)
        shutil.rmtree(self.path("restored"), ignore_errors=True)
        row = {"name": name, "contenders": {
            contender: {key: spread(one[key] for one in mine)
                        for key in MEASURES}
            for contender, mine in runs.items()}}
        row["report"] = runs[SSTFERRY][-1]["report"]
        row["swaps"] = {name: runs[name][-1]["report"] for name in SWAPS
                        if name in runs}
        row["exchange_seconds"] = max(
            (one["report"]["stage_seconds"]["target"]["swap"]
             for name in row["swaps"] for one in runs[name]), default=0)
        row["target_bytes"] = runs[SSTFERRY][-1]["target_bytes"]
        for contender in contenders:
            self.world.say("%s, %s: %s" % (name, contender, " ".join(
                "%s %.3f" % (key, row["contenders"][contender][key]["median"] /
                             (1e6 if key.endswith("bytes") else 1))
                for key in MEASURES)))
        return row


def sizes(directory):
    return {os.path.join(root, name): os.path.getsize(os.path.join(root, name))
            for root, _, names in os.walk(directory) for name in names}


def spread(values):
    values = list(values)
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values)}


def make(world):
    """Makes a source, and a copy of it for every contender."""
    world.make_source()
    peers = [] if world.settings.no_peers else [
        peer for peer in PEERS if peer != "rsync" or shutil.which("rsync")]
    if "rsync" not in peers:
        world.say("rsync is not measured")
    replicas = Replicas(world, peers)
    world.seed()
    for contender in (*SWAPS, *peers):
        replicas.run(contender, [])
    return replicas


def delta(world):
    replicas = make(world)
    shares = [float(text) for text in world.settings.shares.split(",") if text]
    if shares:
        return sweep(world, replicas, shares)
    rows = []
    for generation, (name, change, words, bars) in enumerate(CASES, 1):
        if change:
            world.change(generation=generation, **change)
        row = replicas.measure(name, words, keeps=not words)
        row.update(shares_of(row))
        row["problems"] = problems(row, bars)
        rows.append(row)
    return {"answers": rows, "problems": [
        text for row in rows for text in row["problems"]]}


def sweep(world, replicas, shares):
    """Overwrites each share of the keys in the same source."""
    rows = []
    for path in (world.source, *(path for contender in
                                 (SSTFERRY, *SWAPS, *replicas.peers)
                                 for path in replicas.has(contender))):
        copy_links(path, path + ".first")
    for leave in ("flushed", "compacted"):
        for generation, share in enumerate(shares, 2):
            copy_links(world.source + ".first", world.source)
            for contender in (SSTFERRY, *SWAPS, *replicas.peers):
                replicas.restore(contender, ".first")
            world.change(generation=generation, how="random", leave=leave,
                         overwrite_permille=0,
                         overwrite_per_million=round(share * 1e4))
            row = replicas.measure("%g %%, %s" % (share, leave), [],
                                   keeps=True)
            row.update(shares_of(row), share=share, leave=leave, problems=[])
            rows.append(row)
    return {"answers": rows, "problems": []}


def shares_of(row):
    mine, seed = (row["contenders"][name] for name in (SSTFERRY, SEED))
    return {"wire_share": mine["wire_bytes"]["median"] / row["target_bytes"],
            "written_share":
                mine["written_bytes"]["median"] / row["target_bytes"],
            "time_share":
                mine["seconds"]["median"] / seed["seconds"]["median"],
            "cpu_share": mine["cpu_seconds"]["median"] /
                         seed["cpu_seconds"]["median"]}


def swap_problems(row):
    found = []
    bars = SWAP_BARS.get(row["name"])
    if bars and SWAP in row["contenders"]:
        wire, most_time, seconds = bars
        mine, seed = (row["contenders"][name] for name in (SWAP, SEED))
        share = mine["wire_bytes"]["median"] / row["target_bytes"]
        took = mine["seconds"]["median"]
        if share > wire:
            found.append("%s: %.2f %% of the bytes on the wire of a swap (at "
                         "most %g %%)" % (row["name"], 100 * share, 100 * wire))
        if took > max(seconds, most_time * seed["seconds"]["median"]):
            found.append("%s: a swap took %.2f s, %.0f %% of a seed" % (
                row["name"], took,
                100 * took / seed["seconds"]["median"]))
    if row["exchange_seconds"] > MOST_EXCHANGE:
        found.append("%s: an exchange took %.2f s" % (
            row["name"], row["exchange_seconds"]))
    return found


def problems(row, bars):
    found = swap_problems(row)
    if bars is None:
        return found
    wire, written, most_time, seconds = bars
    for what, share, most in (
            ("of the bytes on the wire", row["wire_share"], wire),
            ("of the bytes written", row["written_share"], written)):
        if share > most:
            found.append("%s: %.2f %% %s (at most %g %%)" % (
                row["name"], 100 * share, what, 100 * most))
    mine, seed = (row["contenders"][name]["seconds"]["median"]
                  for name in (SSTFERRY, SEED))
    if mine > max(seconds, most_time * seed):
        found.append("%s: %.2f s, %.0f %% of a seed" % (
            row["name"], mine, 100 * row["time_share"]))
    return found


# ----- what is shown -----

def delta_text(answers):
    text = ("| Since the refresh before | Seconds | of a seed | CPU, of a "
            "seed | Wire, MB | of the target | Written, of the target | Entries put | deleted | "
            "Parts unchanged | compared | sent |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|\n")
    for row in answers:
        report, mine = row["report"], row["contenders"][SSTFERRY]
        text += "| %s | %.2f | %.0f %% | %.0f %% | %.2f | %.3f %% | %.2f %% |" \
            " %d | %d | %d | %d | %d |\n" % (
                row["name"], mine["seconds"]["median"],
                100 * row["time_share"], 100 * row["cpu_share"],
                mine["wire_bytes"]["median"] / 1e6,
                100 * row["wire_share"], 100 * row["written_share"],
                report["entries_put"], report["entries_deleted"],
                report["parts_unchanged"], report["parts_compared"],
                report["parts_sent"])
    text += "\nThe same changes by an exchange of directories: a swap of a " \
        "replica of chunks, and a swap and a refresh of a clone:\n\n" \
        "| Since the exchange before | Contender | Seconds | of a seed | Wire, of " \
        "the target | Files linked | Exchange, s | Method |\n" \
        "|---|---|---|---|---|---|---|---|\n"
    for row in answers:
        for name, report in row["swaps"].items():
            mine, seed = (row["contenders"][one] for one in (name, SEED))
            text += "| %s | %s | %.2f | %.0f %% | %.3f %% | %d | %.3f | " \
                "%s |\n" % (
                    row["name"], name,
                    mine["seconds"]["median"],
                    100 * mine["seconds"]["median"] /
                    seed["seconds"]["median"],
                    100 * mine["wire_bytes"]["median"] / row["target_bytes"],
                    report["files_reused"],
                    report["stage_seconds"]["target"]["swap"],
                    report["method"])
    text += "\nThe same changes with every contender, medians:\n\n" \
        "| Since the refresh before | Contender | Seconds | Min-max | CPU s " \
        "| Wire, MB | Written, MB |\n|---|---|---|---|---|---|---|\n"
    for row in answers:
        for contender, one in row["contenders"].items():
            text += "| %s | %s | %.2f | %.2f-%.2f | %.2f | %.2f | %.2f |\n" % (
                row["name"], contender, one["seconds"]["median"],
                one["seconds"]["min"], one["seconds"]["max"],
                *(one[key]["median"] / scale for key, scale in (
                    ("cpu_seconds", 1), ("wire_bytes", 1e6),
                    ("written_bytes", 1e6))))
    return text + "\nSeconds last until the last process has ended and the " \
        "files are synced; a refresh's include its compaction. `seed` is one " \
        "with `--method ingest` of the same source; `swap` and `clone swap` " \
        "replace a replica of chunks and a clone, `clone refresh` is a " \
        "refresh of a clone. `rsync` copies a checkpoint "\
        "(hard links of the closed source); `backup-engine` adds an " \
        "incremental backup and restores it, its wire being what the backup " \
        "added. CPU is that of both sides. Written are tables: " \
        "what a refresh received and what its compaction made of it, and for " \
        "`backup-engine` the backup's files and the restored ones.\n"


def write_csv(path, answers):
    with open(path, "w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["change", "share_percent", "left", "contender"] + [
            "%s_%s" % (key, how) for key in MEASURES
            for how in ("median", "min", "max")])
        for row in answers:
            for contender, one in row["contenders"].items():
                table.writerow(
                    [row["name"], row.get("share", ""), row.get("leave", ""),
                     contender] + [
                         json.dumps(round(one[key][how], 4)) for key in MEASURES
                         for how in ("median", "min", "max")])
