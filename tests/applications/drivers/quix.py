"""A state store partition of quixstreams."""

import driver
from quixstreams.state.rocksdb.options import RocksDBOptions
from quixstreams.state.rocksdb.partition import RocksDBStorePartition
from rocksdict import WriteBatch


class App(driver.Application):
    def open(self, dir, create):
        return RocksDBStorePartition(dir, RocksDBOptions(open_max_retries=0, on_corrupted_recreate=False,
                                                         block_cache_size=8 << 20))

    def write(self, db, round_number, count):
        with db.begin() as transaction:
            for key, value in driver.edits(round_number, "default", count):
                name = key.decode()
                if value is not None:
                    transaction.set(name, value.hex(), prefix=b"p")
                elif transaction.get(name, prefix=b"p") is not None:
                    transaction.delete(name, prefix=b"p")

    def read(self, db):
        families = {}
        for name in db.list_column_families() if hasattr(db, "list_column_families") else ["default"]:
            families[name] = driver.digest(db.iter_items(b"", None, cf_name=name))
        return families


driver.serve(App())
