"""python-rocksdb and its descendants (faust-streaming-rocksdb, rdbpython):
argv[1] names the module. Uses the options of Faust's tables."""

import importlib
import sys

import driver

rocksdb = importlib.import_module(sys.argv[1])


class App(driver.Application):
    def open(self, dir, create):
        options = rocksdb.Options(create_if_missing=create, max_open_files=300, write_buffer_size=1 << 20,
                                  max_write_buffer_number=3, target_file_size_base=1 << 20)
        options.table_factory = rocksdb.BlockBasedTableFactory(
            filter_policy=rocksdb.BloomFilterPolicy(10), block_cache=rocksdb.LRUCache(8 << 20))
        return rocksdb.DB(dir, options)

    def write(self, db, round_number, count):
        batch = rocksdb.WriteBatch()
        for key, value in driver.edits(round_number, "default", count):
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        db.write(batch)

    def read(self, db):
        iterator = db.iteritems()
        iterator.seek_to_first()
        return {"default": driver.digest(iterator)}

    def close(self, db):
        if hasattr(db, "close"):
            db.close()


driver.serve(App())
