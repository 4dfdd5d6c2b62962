"""Shared by the Python drivers: the loop over verbs, the writes of an application,
and the digest of its reads."""

import gc
import hashlib
import json
import os
import random
import sys
import threading

KEYS = 6000


def edits(round_number, family, count):
    """Yields the writes of an application into `family` in a round, which are the
    same at each call: pairs of key and value; value None: a deletion."""
    rng = random.Random(f"{round_number} {family}")
    for _ in range(count):
        key = b"key%08d" % rng.randrange(KEYS)
        if rng.randrange(10) == 0:
            yield key, None
        else:
            half = rng.randbytes(rng.randrange(200))
            yield key, half + bytes([round_number % 256]) * len(half)


def digest(entries):
    """Returns [count, digest] of pairs of bytes, in the given order."""
    sha, count = hashlib.sha256(), 0
    for key, value in entries:
        for field in (key, value):
            sha.update(b"%d:" % len(field))
            sha.update(field)
        count += 1
    return [count, sha.hexdigest()[:32]]


class Application:
    """One application. A driver overrides open, write, read and close, and flush if
    the application supports it; `dir`: the application's directory."""

    def open(self, dir, create):
        raise NotImplementedError

    def write(self, db, round_number, count):
        raise NotImplementedError

    def read(self, db):
        """Returns {family: digest}."""
        raise NotImplementedError

    def close(self, db):
        db.close()

    def flush(self, db):
        pass


def answer(application, held, words):
    verb, args = words[0], words[1:]
    if verb == "make":
        os.makedirs(args[0], exist_ok=True)
        for session in range(3):
            db = application.open(args[0], session == 0)
            application.write(db, int(args[1]) * 1000 + session, 4000)
            if session < 2:
                application.flush(db)
            application.close(db)
            db = None
            gc.collect()  # some libraries close only with the last reference
    elif verb == "change":
        db = application.open(args[0], False)
        application.write(db, int(args[1]), 200)
        application.close(db)
        db = None
        gc.collect()
    elif verb == "dump":
        db = application.open(args[0], False)
        try:
            return application.read(db)
        finally:
            application.close(db)
            db = None
            gc.collect()
    elif verb == "hold":
        held.append(application.open(args[0], False))
    elif verb == "write":
        application.write(held[0], int(args[0]), 200)
    elif verb == "digest":
        return application.read(held[0])
    elif verb == "storm":
        def storm():
            round_number = 1 << 20
            while True:
                application.write(held[0], round_number, 50)
                round_number += 1

        threading.Thread(target=storm, daemon=True).start()
    elif verb == "release":
        application.close(held.pop())
    else:
        raise ValueError(f"unknown verb {verb}")
    return {}


def serve(application):
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # so that a library's output is not taken for an answer
    held = []
    for line in sys.stdin:
        try:
            text = "ok " + json.dumps(answer(application, held, line.split()), sort_keys=True)
        except BaseException as e:  # includes Rust's panics
            text = "error " + f"{type(e).__name__}: {e}".replace("\n", " ")
        out.write(text + "\n")
    os._exit(0)
