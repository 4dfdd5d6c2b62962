"""Network namespaces for one source and many targets, each with its own shaped
link. Needs root and iproute2."""

import contextlib
import os
import subprocess


def command(*words):
    subprocess.run([str(w) for w in words], check=True)


@contextlib.contextmanager
def links(count, bits):
    """Yields the namespaces: the source's, then one for each target. `bits`:
    rate of each link in bits per second; 0: links are not shaped."""
    tag = "sstf%d" % (os.getpid() % 100000)
    names = [tag + "-s"] + [tag + "-%d" % i for i in range(count)]
    try:
        for name in names:
            command("ip", "netns", "add", name)
            command("ip", "-n", name, "link", "set", "lo", "up")
        for i, name in enumerate(names[1:]):
            ours, theirs = "%sa%d" % (tag, i), "%sb%d" % (tag, i)
            command("ip", "link", "add", ours, "netns", names[0], "type",
                    "veth", "peer", "name", theirs, "netns", name)
            for where, device, last in ((names[0], ours, 1),
                                        (name, theirs, 2)):
                command("ip", "-n", where, "addr", "add",
                        "10.78.%d.%d/24" % (i, last), "dev", device)
                command("ip", "-n", where, "link", "set", device, "up")
            if bits:
                command("tc", "-n", names[0], "qdisc", "add", "dev", ours,
                        "root", "tbf", "rate", "%dbit" % bits, "burst",
                        "256kb", "latency", "50ms")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False,
                           stderr=subprocess.DEVNULL)


def inside(namespace, *argv):
    return ["ip", "netns", "exec", namespace, *[str(a) for a in argv]]


def address(i):
    """Returns the source's address, as target i sees it."""
    return "10.78.%d.1" % i
