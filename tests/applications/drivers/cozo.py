"""cozo-embedded: a Datalog database on RocksDB."""

import driver
from cozo_embedded import CozoDbPy


class App(driver.Application):
    def open(self, dir, create):
        db = CozoDbPy("rocksdb", dir, "{}")
        if create:
            db.run_script(":create kv {k: String => v: String}", {}, False)
        return db

    def write(self, db, round_number, count):
        puts, removed = {}, set()
        for key, value in driver.edits(round_number, "kv", count):
            name = key.decode()
            puts.pop(name, None)
            removed.discard(name)
            if value is None:
                removed.add(name)
            else:
                puts[name] = value.hex()
        db.run_script("?[k, v] <- $rows :put kv {k => v}", {"rows": list(map(list, puts.items()))}, False)
        db.run_script("?[k] <- $rows :rm kv {k}", {"rows": [[name] for name in removed]}, False)

    def read(self, db):
        rows = db.run_script("?[k, v] := *kv{k, v}", {}, True)["rows"]
        return {"kv": driver.digest((k.encode(), v.encode()) for k, v in sorted(rows))}


driver.serve(App())
