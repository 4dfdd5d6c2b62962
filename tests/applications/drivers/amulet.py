"""amulet-rocksdb: a wrapper for worlds of games."""

import driver
from rocksdb import RocksDB


class App(driver.Application):
    def open(self, dir, create):
        return RocksDB(dir, create)

    def write(self, db, round_number, count):
        edits = driver.edits(round_number, "default", count)
        db.put_batch([(key, value) for key, value in dict(edits).items()])

    def read(self, db):
        return {"default": driver.digest(db.items())}


driver.serve(App())
