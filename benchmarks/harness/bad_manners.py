#!/usr/bin/env python3
"""A relay in front of a pull that makes it behave like a bad target.

    bad_manners.py MANNER LISTEN_PORT HOST:PORT BYTES_PER_SEC

stall      lanes get some bytes and then none, and later lanes get none: the
           relay does not read what the source sends on lanes
slow       BYTES_PER_SEC over all connections
reconnect  every connection is reset every half second
The first connection is the control connection. SIGUSR1 ends the bad behaviour:
afterwards everything is forwarded.
"""

import signal
import socket
import struct
import sys
import threading
import time

STALL_AFTER_BYTES = 64 << 10
RESET_SECONDS = 0.5
PIECE_BYTES = 64 << 10


class Relay:
    def __init__(self, manner, target, slow_bytes_per_sec):
        self.manner = manner
        self.target = target
        self.slow_bytes_per_sec = slow_bytes_per_sec
        self.good = threading.Event()
        self.lock = threading.Lock()
        self.links = []
        self.stalled = False
        self.slow_until = time.monotonic()

    def serve(self, port):
        listener = socket.create_server(("127.0.0.1", port))
        print("relaying", flush=True)
        if self.manner == "reconnect":
            threading.Thread(target=self.reset_all, daemon=True).start()
        is_lane = False
        while True:
            client, _ = listener.accept()
            source = socket.socket()
            if self.manner != "reconnect":
                # The kernel takes this much even if the target does not read.
                source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                  128 << 10)
            try:
                source.connect(self.target)
            except OSError:
                client.close()
                continue
            with self.lock:
                self.links.append((client, source))
            for ends, lane in (((client, source), False),
                               ((source, client), is_lane)):
                threading.Thread(target=self.pump, args=(*ends, lane),
                                 daemon=True).start()
            is_lane = True

    def pump(self, come_from, go_to, is_lane):
        """`is_lane`: these are the bytes that the source sends on a lane."""
        passed = 0
        try:
            while True:
                if is_lane and self.manner == "stall":
                    self.stalled = self.stalled or passed > STALL_AFTER_BYTES
                    if self.stalled:
                        self.good.wait()
                data = come_from.recv(PIECE_BYTES)
                if not data:
                    break
                if is_lane and self.manner == "slow":
                    self.take_turn(len(data))
                passed += len(data)
                go_to.sendall(data)
        except OSError:
            pass
        for end in (come_from, go_to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def take_turn(self, count):
        if self.good.is_set():
            return
        with self.lock:
            now = time.monotonic()
            self.slow_until = (max(now, self.slow_until) +
                               count / self.slow_bytes_per_sec)
            wait = self.slow_until - now
        self.good.wait(wait)

    def reset_all(self):
        while not self.good.wait(RESET_SECONDS):
            with self.lock:
                links, self.links = self.links, []
            for link in links:
                for end in link:
                    try:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
                        end.shutdown(socket.SHUT_RDWR)
                        end.close()
                    except OSError:
                        pass


def main():
    manner, port, target, rate = sys.argv[1:]
    host, _, target_port = target.rpartition(":")
    relay = Relay(manner, (host, int(target_port)), int(rate))
    signal.signal(signal.SIGUSR1, lambda *_: relay.good.set())
    relay.serve(int(port))


if __name__ == "__main__":
    main()
