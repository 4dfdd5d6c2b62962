"""MyRocks: a separate MariaDB server with the RocksDB engine and the datadir DIR; the
database is DIR/#rocksdb. argv[1]: the directory of the unpacked packages."""

import os
import signal
import subprocess
import sys
import tempfile

import driver

ROOT = sys.argv[1]
TABLES = {
    # Rows and secondary indexes in three column families, one in reverse order.
    "plain": "CREATE TABLE plain (k VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY, v VARBINARY(1000), n INT, "
             "INDEX by_n (n)) ENGINE=ROCKSDB",
    "reverse": "CREATE TABLE reverse (k VARCHAR(20) CHARACTER SET latin1, v VARBINARY(1000), n INT, "
               "PRIMARY KEY (k) COMMENT 'rev:backwards', INDEX by_n (n) COMMENT 'indexes') ENGINE=ROCKSDB",
}


def libraries():
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(
        f"{ROOT}/{top}/x86_64-linux-gnu" for top in ("usr/lib", "lib"))}


class Server:
    def __init__(self, dir):
        self.sockets = tempfile.TemporaryDirectory(prefix="mysql-")  # short, because a socket's path has at most 107 bytes
        self.socket = f"{self.sockets.name}/s"
        log = f"{self.sockets.name}/log"
        self.process = subprocess.Popen(
            [f"{ROOT}/usr/sbin/mariadbd", "--no-defaults", f"--datadir={dir}", f"--socket={self.socket}",
             "--user=root", "--skip-networking", "--skip-grant-tables", "--skip-innodb", "--skip-log-bin",
             "--default-storage-engine=rocksdb", f"--plugin-dir={ROOT}/usr/lib/mysql/plugin",
             "--plugin-maturity=unknown", "--plugin-load-add=ha_rocksdb", f"--tmpdir={self.sockets.name}",
             f"--lc-messages-dir={ROOT}/usr/share/mysql", f"--pid-file={self.sockets.name}/pid",
             "--rocksdb-block-cache-size=16777216", "--key-buffer-size=1M"],
            env=libraries(), stdin=subprocess.DEVNULL, stdout=2, stderr=open(log, "wb"))
        while True:
            if self.process.poll() is not None:
                lines = [line for line in open(log, errors="replace") if "[ERROR]" in line]
                raise RuntimeError("mariadbd ended: " + " | ".join(line.strip() for line in lines[:3]))
            try:
                self.query("SELECT 1")
                return
            except RuntimeError:  # it does not listen yet; the runner limits the time
                pass

    def query(self, sql):
        done = subprocess.run(
            [f"{ROOT}/usr/bin/mariadb", "--no-defaults", f"--socket={self.socket}", "--batch", "--raw",
             "--skip-column-names", "--connect-timeout=5"],
            input=sql.encode(), env=libraries(), capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace").strip())
        return done.stdout.splitlines()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.sockets.cleanup()


class App(driver.Application):
    def open(self, dir, create):
        server = Server(dir)
        if create:
            server.query("CREATE DATABASE app; USE app; " + "; ".join(TABLES.values()))
        return server

    def write(self, db, round_number, count):
        sql = ["USE app; BEGIN;"]
        for table in TABLES:
            for key, value in driver.edits(round_number, table, count):
                if value is None:
                    sql.append(f"DELETE FROM {table} WHERE k = '{key.decode()}';")
                else:
                    sql.append(f"REPLACE INTO {table} VALUES ('{key.decode()}', x'{value.hex()}', {len(value)});")
        db.query("\n".join(sql) + "\nCOMMIT;")

    def read(self, db):
        result = {}
        for table in TABLES:
            for index, order in (("PRIMARY", "k"), ("by_n", "n, k")):
                rows = db.query(f"SELECT k, HEX(v), n FROM app.{table} FORCE INDEX ({index}) ORDER BY {order};")
                result[f"{table} {index}"] = driver.digest((row, b"") for row in rows)
        return result

    def flush(self, db):
        db.query("SET GLOBAL rocksdb_force_flush_memtable_now = 1;")

    def close(self, db):
        db.stop()


driver.serve(App())
