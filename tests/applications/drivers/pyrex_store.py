"""pyrex-rocksdb, with a second column family."""

import driver
import pyrex


class App(driver.Application):
    def open(self, dir, create):
        options = pyrex.PyOptions()
        options.create_if_missing = create
        db = pyrex.PyRocksDBExtended(dir, options)
        if create:
            db.create_column_family("second")
        return db

    def write(self, db, round_number, count):
        for name in ("default", "second"):
            family = db.get_column_family(name)
            batch = pyrex.PyWriteBatch()
            for key, value in driver.edits(round_number, name, count):
                if value is None:
                    batch.delete_cf(family, key)
                else:
                    batch.put_cf(family, key, value)
            db.write(batch)

    def read(self, db):
        result = {}
        for name in ("default", "second"):
            iterator = db.new_cf_iterator(db.get_column_family(name))
            iterator.seek_to_first()
            pairs = []
            while iterator.valid():
                pairs.append((iterator.key(), iterator.value()))
                iterator.next()
            del iterator
            result[name] = driver.digest(pairs)
        return result


driver.serve(App())
