"""The applications: their packages, the command line of their driver, and the path
of the database below the application's directory."""

import dataclasses
import os
import shutil
import sys
from collections.abc import Callable

import packages

DRIVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "drivers")


@dataclasses.dataclass
class Application:
    name: str
    # Fetches the packages; returns the driver's command line and environment.
    prepare: Callable[[], tuple[list[str], dict[str, str]]]
    # The path of the database below the application's directory.
    database: str = ""
    # False: it writes without the WAL, so it reads more than it would recover
    # after a crash.
    wal: bool = True


def _java(source, coordinates, *arguments):
    def prepare():
        if shutil.which("java") is None:
            raise packages.Missing("java is not installed")
        class_path = packages.java_classes(os.path.join(DRIVERS, source), packages.mvn(coordinates))
        return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", class_path,
                source.removesuffix(".java"), *arguments], {}

    return prepare


def _python(specs, source, *arguments):
    def prepare():
        path = packages.pip(specs)
        return [sys.executable, os.path.join(DRIVERS, source), *arguments], {
            "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}

    return prepare


def _node(spec, source):
    def prepare():
        if shutil.which("node") is None:
            raise packages.Missing("node is not installed")
        return ["node", os.path.join(DRIVERS, source)], {"PACKAGE": packages.npm(spec)}

    return prepare


def _myrocks():
    root = packages.apt(
        ["mariadb-plugin-rocksdb", "mariadb-server-core", "mariadb-client-core", "mariadb-common",
         "libmariadb3", "libnuma1", "liburing2", "libedit2", "libbsd0", "libmd0", "libpcre2-8-0",
         "libsnappy1v5", "liblz4-1", "libzstd1"],
        optional=["libaio1", "libaio1t64", "libncurses6", "libtinfo6"])
    return [sys.executable, os.path.join(DRIVERS, "mariadb.py"), root], {"PYTHONDONTWRITEBYTECODE": "1"}


# The applications of the matrix of versions, oldest first.
JNI_VERSIONS = ["6.29.5", "7.10.2", "8.11.4", "9.10.0", "10.10.1", "11.8.1"]

APPLICATIONS = [
    *(Application(f"rocksdbjni-{v}", _java("Jni.java", f"org.rocksdb:rocksdbjni:{v}")) for v in JNI_VERSIONS),
    Application("rocksdbjni-11.8.1-format5", _java("Jni.java", "org.rocksdb:rocksdbjni:11.8.1", "format=5")),
    Application("rocksdbjni-8.11.4-txn", _java("Jni.java", "org.rocksdb:rocksdbjni:8.11.4", "db=txn")),
    Application("rocksdbjni-10.10.1-ttl", _java("Jni.java", "org.rocksdb:rocksdbjni:10.10.1", "db=ttl")),
    # Flink 1.20 and Flink 2: the RocksDB libraries of their state backend, used
    # like there: without the WAL, with Flink's merge operator. A real job would
    # need a cluster.
    Application("flink-1.20", _java("Jni.java", "com.ververica:frocksdbjni:6.20.3-ververica-2.0",
                                    "wal=false", "blobs=false", "merge=stringappendtest"), wal=False),
    Application("flink-2", _java("Jni.java", "com.ververica:frocksdbjni:8.10.0-ververica-1.0",
                                 "wal=false", "merge=stringappendtest"), wal=False),
    *(Application(f"kafka-streams-{v}", _java("KafkaStore.java", f"org.apache.kafka:kafka-streams-test-utils:{v}"),
                  database="rocksdb/counts", wal=False) for v in ("3.9.2", "4.3.1")),
    *(Application(f"rocksdict-{v}-{kind}", _python(f"rocksdict=={v}", "rocksdict_raw.py", kind))
      for v in ("0.3.29", "0.3.4") for kind in ("raw", "typed")),
    *(Application(f"speedict-0.3.12-{kind}", _python("speedict==0.3.12", "rocksdict_raw.py", kind, "speedict"))
      for kind in ("raw", "typed")),
    Application("quixstreams-3.28.1", _python("quixstreams==3.28.1 rocksdict==0.3.29", "quix.py")),
    Application("pyoxigraph-0.5.13", _python("pyoxigraph==0.5.13", "oxigraph.py")),
    Application("cozo-embedded-0.7.6", _python("cozo-embedded==0.7.6", "cozo.py"), database="data"),
    Application("faust-streaming-rocksdb-0.9.3",
                _python("faust-streaming-rocksdb==0.9.3", "python_rocksdb.py", "rocksdb")),
    Application("rdbpython-0.2.7", _python("rdbpython==0.2.7", "python_rocksdb.py", "rdbpy")),
    Application("pyrex-rocksdb-0.6.0", _python("pyrex-rocksdb==0.6.0", "pyrex_store.py")),
    Application("amulet-rocksdb-1.0.6", _python("amulet-rocksdb==1.0.6", "amulet.py")),
    Application("npm-rocksdb-5.2.1", _node("rocksdb@5.2.1", "leveldown.js")),
    Application("npm-nxtedition-12.2.12", _node("@nxtedition/rocksdb@12.2.12", "nxtedition.js")),
    Application("npm-rocksdb-native-3.18.1", _node("rocksdb-native@3.18.1", "holepunch.js")),
    Application("myrocks", _myrocks, database="#rocksdb"),
]
