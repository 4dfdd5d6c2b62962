"""An attacker of `sstferry serve`, or a spinner that takes as much CPU.

    attack.py connections FROM PORT   opens connections as fast as it can and
                                      keeps the newest 400 open
    attack.py drip FROM PORT          keeps 200 open, each sending one byte of
                                      a frame's header now and then; opens a new
                                      one for each that is closed
    attack.py targets FROM PORT SSTFERRY DIR
                                      two targets that pull "other" with the
                                      smallest chunks, are killed, and begin
                                      again with another plan, beside
                                      "connections"
    attack.py spin SHARE              uses this many cores, for example 0.7

FROM is the attacker's address, PORT the server's on 127.0.0.1. Prints
"attacking" once the attack runs, and on SIGTERM the number of connections that
it made. The process and its children are one process group.
"""

import json
import math
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

KEPT_OPEN = 400
DRIPPING = 200
DRIP_SECONDS = 0.5
# Start of a frame; ten seconds of dripping do not complete its header.
MAGIC = b"SFY1"
SPIN_SECONDS = 0.001
TARGETS = 2
LEAST_CHUNK_BYTES = 65536
# Long enough for a snapshot, a plan and the first chunks.
PULL_SECONDS = 1.5


class Stopped(Exception):
    """SIGTERM arrived."""


def on_signal(_number, _frame):
    raise Stopped


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Attacker:
    def __init__(self, address, port):
        self.address = address
        self.port = port
        self.made = 0

    def connect(self):
        """Returns a connection in progress; None if there is no server."""
        one = socket.socket()
        one.setblocking(False)
        # The kernel chooses the port at connect(), so that many connections can
        # share it.
        one.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        try:
            one.bind((self.address, 0))
            one.connect(("127.0.0.1", self.port))
        except BlockingIOError:
            pass
        except OSError:
            one.close()
            return None
        self.made += 1
        if self.made == KEPT_OPEN:
            say("attacking")
        return one

    def connections(self):
        open_ones = []
        while True:
            one = self.connect()
            if one is None:
                time.sleep(SPIN_SECONDS)
                continue
            open_ones.append(one)
            if len(open_ones) > KEPT_OPEN:
                open_ones.pop(0).close()

    def drip(self):
        open_ones = {}
        while True:
            while len(open_ones) < DRIPPING:
                one = self.connect()
                if one is None:
                    time.sleep(SPIN_SECONDS)
                    continue
                open_ones[one] = 0
            closed, _, _ = select.select(list(open_ones), [], [], 0)
            for one in list(open_ones):
                sent = open_ones[one]
                try:
                    if one not in closed:
                        one.send(MAGIC[sent:sent + 1] or b"\0")
                        open_ones[one] = sent + 1
                        continue
                except BlockingIOError:
                    continue
                except OSError:
                    pass
                one.close()
                del open_ones[one]
            time.sleep(DRIP_SECONDS)


def targets(address, port, sstferry, directory):
    """Kills its pulls, so that the source must notice that they ended."""
    flood = subprocess.Popen(
        [sys.executable, __file__, "connections", address, port],
        stdout=subprocess.PIPE, text=True)
    flood.stdout.readline()
    say("attacking")
    pulls = []
    made = 0
    try:
        while True:
            for i in range(TARGETS):
                made += 1
                target = os.path.join(directory, "hostile%d" % i)
                shutil.rmtree(target + ".sstferry", ignore_errors=True)
                shutil.rmtree(target, ignore_errors=True)
                pulls.append(subprocess.Popen([
                    sstferry, "pull", "sst://127.0.0.1:%s/other" % port, target,
                    "--restart", "--snapshot", "latest", "--method", "ingest",
                    "--lanes", "16", "--progress", "never", "--chunk-bytes",
                    str(LEAST_CHUNK_BYTES + 4096 * made)],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            time.sleep(PULL_SECONDS)
            while pulls:
                pulls[-1].kill()
                pulls.pop().wait()
    finally:
        for pull in pulls:
            pull.kill()
        flood.terminate()
        made += json.loads(flood.stdout.read())["connections"]
        say('{"connections": %d}' % made)


def spin(share):
    """Uses `share` cores. Catches up after other processes had the CPU. A
    process uses at most one core."""
    processes = max(1, math.ceil(share))
    for _ in range(processes - 1):
        if os.fork() == 0:
            break
    share /= processes
    say("attacking")
    started = time.monotonic()
    while True:
        if time.process_time() < share * (time.monotonic() - started):
            until = time.process_time() + SPIN_SECONDS
            while time.process_time() < until:
                pass
        else:
            time.sleep(SPIN_SECONDS)


def main():
    signal.signal(signal.SIGTERM, on_signal)
    attacker = None
    try:
        if sys.argv[1] != "connections" or os.getppid() != os.getpgrp():
            os.setpgid(0, 0)
        if sys.argv[1] == "targets":
            targets(*sys.argv[2:])
        if sys.argv[1] == "spin":
            spin(float(sys.argv[2]))
        attacker = Attacker(sys.argv[2], int(sys.argv[3]))
        getattr(attacker, sys.argv[1])()
    except Stopped:
        if sys.argv[1] == "targets":
            return
        say('{"connections": %d}' % (attacker.made if attacker else 0))


if __name__ == "__main__":
    main()
