"""rocksdict in raw mode, with a second column family. argv[1]: "raw", or
"typed" for Python values in one family. Also speedict: argv[2] names the module."""

import importlib
import sys

import driver

module = importlib.import_module(sys.argv[2] if len(sys.argv) > 2 else "rocksdict")
RAW = sys.argv[1] == "raw"


class App(driver.Application):
    def open(self, dir, create):
        options = module.Options(raw_mode=RAW)
        options.create_if_missing(create)
        if not RAW:
            return module.Rdict(dir, options) if create else module.Rdict(dir)
        if create:
            db = module.Rdict(dir, options)
            db.create_column_family("second", module.Options(raw_mode=True))
            return db
        return module.Rdict(dir, options, {"second": module.Options(raw_mode=True)})

    def families(self, db):
        return {"default": db, "second": db.get_column_family("second")} if RAW else {"default": db}

    def write(self, db, round_number, count):
        for name, family in self.families(db).items():
            for key, value in driver.edits(round_number, name, count):
                if not RAW:  # the usual way: strings and lists as keys and values
                    key = key.decode()
                    value = None if value is None else [len(value), value.hex(), float(len(value))]
                if value is not None:
                    family[key] = value
                elif key in family:
                    del family[key]

    def read(self, db):
        result = {}
        for name, family in self.families(db).items():
            pairs = family.items()
            if not RAW:
                pairs = [(repr(k).encode(), repr(v).encode()) for k, v in pairs]
            result[name] = driver.digest(pairs)
        return result

    def flush(self, db):
        for family in self.families(db).values():
            family.flush()


driver.serve(App())
