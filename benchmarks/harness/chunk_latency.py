#!/usr/bin/env python3
"""Measures the time from a finished chunk at the source to its ingestion.

The source logs "finished chunk N of part R of transfer T" (serve --log-level
debug --log-format json). RocksDB removes a chunk's name from
TARGET_DIR.sstferry/staging as the last step of its ingestion; inotify reports
when. Both sides use one machine, and so one clock. A source's times are rounded
down to milliseconds.

    chunk_latency.py TARGET_DIR COMMAND...   runs a pull from a directory, which
                                             is its own source; prints JSON
"""

import ctypes
import datetime
import json
import math
import os
import re
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time

FINISHED = re.compile(
    r"finished chunk (\d+) of part (\d+) of transfer ([0-9a-f]+)")
STAGED = re.compile(r"(\d+)-(\d+)\.sst$")
IN_DELETE = 0x200
EVENT = struct.Struct("iIII")
LOOK_SECONDS = 0.002
WAIT_SECONDS = 0.1


def finished_chunks(path):
    """Returns (transfer, part, chunk) -> seconds since 1970, from a log."""
    chunks = {}
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            found = FINISHED.search(line)
            if found is None:
                continue
            at = datetime.datetime.strptime(json.loads(line)["time"],
                                            "%Y-%m-%dT%H:%M:%S.%fZ")
            # If a chunk is sent again after an interruption, the first time
            # counts.
            chunks.setdefault(
                (found[3], int(found[2]), int(found[1])),
                at.replace(tzinfo=datetime.timezone.utc).timestamp())
    return chunks


class IngestWatch:
    """Records when each chunk of a pull into `target` was ingested."""

    def __init__(self, target):
        self.times = {}  # (part, chunk) -> seconds since 1970
        self._staging = target + ".sstferry/staging"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        libc = ctypes.CDLL(None, use_errno=True)
        queue = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            # The directory exists before the target requests a plan.
            while (libc.inotify_add_watch(
                    queue, os.fsencode(self._staging), IN_DELETE) < 0 and
                   not self._done.wait(LOOK_SECONDS)):
                pass
            while not self._done.is_set():
                if select.select([queue], [], [], WAIT_SECONDS)[0]:
                    self._take(os.read(queue, 1 << 16))
        finally:
            os.close(queue)

    def _take(self, events):
        now = time.time()
        at = 0
        while at < len(events):
            _, _, _, length = EVENT.unpack_from(events, at)
            at += EVENT.size
            name = events[at:at + length].rstrip(b"\0").decode()
            at += length
            found = STAGED.match(name)
            if found:
                self.times[(int(found[1]), int(found[2]))] = now

    def stop(self):
        self._done.set()
        self._thread.join()
        return self.times


def latencies(finished, transfer, ingested):
    """Returns sorted seconds for one transfer's chunks that are in both."""
    return sorted(max(0.0, at - finished[(transfer,) + chunk])
                  for chunk, at in ingested.items()
                  if (transfer,) + chunk in finished)


def percentile(values, share):
    """Returns the smallest of the sorted `values` that a `share` of them does
    not exceed."""
    return values[max(1, math.ceil(share * len(values))) - 1]


def main():
    target, command = sys.argv[1], sys.argv[2:]
    watch = IngestWatch(target)
    with tempfile.NamedTemporaryFile() as log:
        try:
            done = subprocess.run(
                command + ["--log-level", "debug", "--log-format", "json",
                           "--json", "--progress", "never"],
                stdout=subprocess.PIPE, stderr=log, check=False)
        finally:
            ingested = watch.stop()
        if done.returncode != 0:
            with open(log.name, encoding="utf-8", errors="replace") as text:
                sys.stderr.write(text.read())
            return done.returncode
        report = json.loads(done.stdout)
        finished = finished_chunks(log.name)
    values = latencies(finished, report["transfer_id"], ingested)
    print(json.dumps({
        "chunks": report["chunks"], "finished": len(finished),
        "ingested": len(ingested), "measured": len(values),
        "p50_s": percentile(values, 0.5), "p95_s": percentile(values, 0.95),
        "p99_s": percentile(values, 0.99), "most_s": values[-1]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
