"""Fetches pinned packages into the cache, with the machine's own pip, mvn, npm and
apt. A package whose directory exists is not fetched again."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                     "sstferry", "applications")
FETCH_SECONDS = 900


class Missing(Exception):
    """A package cannot be fetched here; its application is skipped."""


def _run(argv, cwd=None):
    if shutil.which(argv[0]) is None:
        raise Missing(f"{argv[0]} is not installed")
    try:
        done = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise Missing(f"{argv[0]} took more than {FETCH_SECONDS} s") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        errors = [line for line in lines if "ERROR" in line.upper()] or lines[-1:]
        raise Missing(f"{' '.join(argv[:3])}: {errors[0] if errors else 'failed'}")
    return done.stdout


def _cached(kind, name, fill):
    """Returns CACHE/kind/name, made by fill(directory) if it is missing."""
    path = os.path.join(CACHE, kind, name.replace("/", "_").replace(":", "_"))  # a class path has ":" between
    if not os.path.isdir(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as scratch:
            made = os.path.join(scratch, "made")
            os.mkdir(made)
            fill(made)
            try:
                os.rename(made, path)
            except OSError:  # another run was faster
                if not os.path.isdir(path):
                    raise
    return path


def pip(specs):
    """Returns a directory for PYTHONPATH; `specs`: NAME==VERSION, separated by spaces."""
    tag = f"{specs}-python{sys.version_info[0]}.{sys.version_info[1]}".replace(" ", "_")
    return _cached("pip", tag, lambda made: _run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", made,
         *specs.split()]))


def mvn(coordinates):
    """Returns a class path of GROUP:ARTIFACT:VERSION and its dependencies."""
    group, artifact, version = coordinates.split(":")

    def fill(made):
        with tempfile.TemporaryDirectory() as project:
            with open(os.path.join(project, "pom.xml"), "w") as pom:
                pom.write(f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>sstferry</groupId><artifactId>applications</artifactId>
<version>1</version><dependencies><dependency><groupId>{group}</groupId>
<artifactId>{artifact}</artifactId><version>{version}</version></dependency></dependencies></project>""")
            _run(["mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies",
                  f"-DoutputDirectory={made}"], cwd=project)

    return os.path.join(_cached("mvn", coordinates, fill), "*")


def java_classes(source, class_path):
    """Returns a class path with `source` compiled for class_path."""
    with open(source, "rb") as file:
        digest = hashlib.sha256(file.read() + class_path.encode()).hexdigest()[:16]
    classes = _cached("classes", digest, lambda made: _run(
        ["javac", "-nowarn", "-Xlint:none", "-cp", class_path, "-d", made, source]))
    return f"{class_path}:{classes}"


def npm(spec):
    """Returns the package's directory; `spec` is NAME@VERSION."""
    name = spec[:spec.rindex("@")]
    made = _cached("npm", spec, lambda made: _run(
        ["npm", "install", "--no-save", "--silent", "--prefix", made, spec]))
    return os.path.join(made, "node_modules", name)


def apt(names, optional=()):
    """Returns a directory with the unpacked packages, in the versions of the
    machine's Debian release. Names in `optional` may be unknown to apt."""
    versions = {}
    for name in (*names, *optional):
        policy = _run(["apt-cache", "policy", name])
        candidate = [line.split()[1] for line in policy.splitlines() if line.strip().startswith("Candidate:")]
        if candidate and candidate[0] != "(none)":
            versions[name] = candidate[0]
        elif name in names:
            raise Missing(f"apt has no package {name}; is apt-get update needed?")

    def fill(made):
        with tempfile.TemporaryDirectory() as debs:
            _run(["apt-get", "download", *(f"{name}={version}" for name, version in versions.items())], cwd=debs)
            for deb in os.listdir(debs):
                _run(["dpkg", "-x", os.path.join(debs, deb), made])

    return _cached("apt", f"{names[0]}={versions[names[0]]}", fill)
