"""One session: databases, runs in turn, and checks of every result."""

import os
import re
import shutil
import statistics
import time

from harness import report
from harness.contenders import CONTENDERS, VARIANTS, Run, missing_program
from harness.process import Failed, run_to_end

# A median above the better ceiling by more than this factor is an error.
CEILING_TOLERANCE = 1.10


def parse_bytes(text):
    found = re.fullmatch(r"(\d+)([KMG]?)(i?)", text)
    if found is None:
        raise ValueError("not a number of bytes: " + text)
    base = 1024 if found.group(3) else 1000
    return int(found.group(1)) * base ** " KMG".find(found.group(2) or " ")


class Database:
    """A source and its contents, as bench_check_database read them."""

    def __init__(self, name, path, content):
        self.name = name
        self.path = path
        self.content = content


def tail_share(series):
    """Returns the time of the last tenth of the bytes over a tenth of the time.

    1: the rate is even. Above 1: at the end, few lanes were busy.
    """
    total = series[-1][1] if series else 0
    for (then, before), (now, grown) in zip(series, series[1:]):
        if grown >= 0.9 * total > before:
            part = (0.9 * total - before) / (grown - before)
            reached = then + part * (now - then)
            return (series[-1][0] - reached) / (0.1 * series[-1][0])
    return None


class Session:
    def __init__(self, settings):
        self.settings = settings
        self.databases = []
        self.runs = []
        self.missing = {}

    # ----- databases -----

    def make_database(self, name, *options):
        path = os.path.join(self.settings.workdir, "source-" + name)
        shutil.rmtree(path, ignore_errors=True)
        scratch = self.scratch("make")
        self.say("making %s" % name)
        made = run_to_end("make", [
            self.tool("make_database"), "--dir", path, *options], scratch,
                          self.settings.deadline)
        content = self.check(path)
        content["made"] = made.json_report()
        database = Database(name, path, content)
        self.databases.append(database)
        return database

    def take_database(self, name, directory):
        """Uses an existing database. No contender writes to a source."""
        path = os.path.join(self.settings.workdir, "source-" + name)
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(directory, path, copy_function=os.link)
        content = self.check(path)
        content["made"] = {"dir": path, "from": directory}
        database = Database(name, path, content)
        self.databases.append(database)
        return database

    def tool(self, name):
        return os.path.join(self.settings.build, "benchmarks", "bench_" + name)

    def scratch(self, name):
        path = os.path.join(self.settings.workdir, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path

    def check(self, path):
        scratch = self.scratch("check")
        process = run_to_end("check", [self.tool("check_database"), "--dir",
                                       path], scratch, self.settings.deadline)
        return process.json_report()

    @staticmethod
    def say(text):
        report.say(time.strftime("%H:%M:%S ") + text)

    # ----- runs -----

    def settle(self, database):
        """Writes dirty pages; brings the source into the page cache, or out."""
        os.sync()
        for name in sorted(os.listdir(database.path)):
            path = os.path.join(database.path, name)
            fd = os.open(path, os.O_RDONLY)
            try:
                if self.settings.cold:
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                else:
                    while os.read(fd, 1 << 22):
                        pass
            finally:
                os.close(fd)
        time.sleep(self.settings.settle_seconds)

    def run_once(self, database, name, repeat):
        contender = CONTENDERS.get(name) or VARIANTS[name]
        self.settle(database)
        run = Run(self.settings, database.path, self.scratch("run"))
        record = {"database": database.name, "contender": name,
                  "repeat": repeat, "error": ""}
        try:
            try:
                contender(run)
            finally:
                run.close()
            record["check"] = self.check_target(run.target, database)
        except (Failed, OSError, KeyError, TypeError) as error:
            record["error"] = "%s: %s" % (type(error).__name__, error)
        record.update(self.figures(run, database))
        self.runs.append(record)
        shutil.rmtree(run.scratch, ignore_errors=True)
        self.say(self.line(record))
        return record

    def check_target(self, target, database):
        content = self.check(target)
        for key in ("entries", "digest"):
            if content[key] != database.content[key]:
                raise Failed("%s: expected %s, found %s in the target" % (
                    key, database.content[key], content[key]))
        return content

    def figures(self, run, database):
        processes = [process.facts() for process in run.processes]
        cpu = sum((p["cpu_user_seconds"] or 0) + (p["cpu_system_seconds"] or 0)
                  for p in processes)
        out = {"processes": processes, "seconds": run.seconds,
               "sync_seconds": run.sync_seconds, "cpu_seconds": cpu,
               "target_bytes": run.target_bytes, "series": run.series}
        if run.seconds:
            content = database.content
            out["payload_bytes_per_second"] = (
                content["key_value_bytes"] / run.seconds)
            out["entries_per_second"] = content["entries"] / run.seconds
            out["tail_share"] = tail_share(run.series)
            out["target_bytes_per_second"] = run.target_bytes / run.seconds
            out["cpu_us_per_entry"] = cpu * 1e6 / max(1, content["entries"])
        return out

    @staticmethod
    def line(record):
        where = "%s %s #%d: " % (record["database"], record["contender"],
                                 record["repeat"])
        if record["error"]:
            return where + "FAILED " + record["error"]
        peaks = ", ".join("%s %.0f MiB" % (p["role"],
                                           p["peak_rss_bytes"] / 2**20)
                          for p in record["processes"])
        return where + "%.2f s, %.1f MB/s, CPU %.2f s, %s" % (
            record["seconds"], record["payload_bytes_per_second"] / 1e6,
            record["cpu_seconds"], peaks)

    def compete(self, database, names, repeats):
        """Runs every contender once, then all of them again, and so on."""
        present = []
        for name in names:
            reason = missing_program(name, self.settings)
            if reason:
                self.missing[name] = reason
                self.say("MISSING %s: %s" % (name, reason))
            else:
                present.append(name)
        for repeat in range(1, repeats + 1):
            for name in present:
                self.run_once(database, name, repeat)

    # ----- results -----

    def summaries(self):
        """Returns one per database and contender, from runs without error."""
        groups = {}
        for record in self.runs:
            groups.setdefault((record["database"], record["contender"]),
                              []).append(record)
        return [self.summary(key, runs) for key, runs in groups.items()]

    @staticmethod
    def summary(key, runs):
        good = [r for r in runs if not r["error"]]
        out = {"database": key[0], "contender": key[1], "runs": len(runs),
               "failed": len(runs) - len(good)}
        for field in ("seconds", "sync_seconds", "cpu_seconds",
                      "payload_bytes_per_second", "entries_per_second",
                      "target_bytes_per_second", "cpu_us_per_entry",
                      "tail_share"):
            values = [r[field] for r in good if r[field] is not None]
            if values:
                out[field] = {"median": statistics.median(values),
                              "min": min(values), "max": max(values)}
        peaks = {}
        for record in good:
            for process in record["processes"]:
                role = process["role"]
                peaks[role] = max(peaks.get(role, 0),
                                  process["peak_rss_bytes"] or 0)
        out["peak_rss_bytes"] = peaks
        source_cpu = [p["cpu_user_seconds"] + p["cpu_system_seconds"]
                      for r in good for p in r["processes"]
                      if p["role"] == "source"]
        if source_cpu:
            out["source_cpu_seconds"] = statistics.median(source_cpu)
        if good:
            out["levels"] = good[-1]["check"]["levels"]
        return out

    def problems(self):
        """Returns why this session's figures are not valid; else nothing."""
        found = ["%s %s #%d: %s" % (r["database"], r["contender"], r["repeat"],
                                    r["error"])
                 for r in self.runs if r["error"]]
        rates = {(s["database"], s["contender"]):
                 s["target_bytes_per_second"]["median"]
                 for s in self.summaries() if "target_bytes_per_second" in s}
        for (database, name), rate in rates.items():
            ceilings = [r for (d, n), r in rates.items()
                        if d == database and n.startswith("ceiling-")]
            if name.startswith("ceiling-") or not ceilings:
                continue
            if rate > CEILING_TOLERANCE * max(ceilings):
                found.append(
                    "%s %s: %.0f MB/s is more than 10 %% above the better "
                    "ceiling's %.0f MB/s" % (database, name, rate / 1e6,
                                             max(ceilings) / 1e6))
        return found
