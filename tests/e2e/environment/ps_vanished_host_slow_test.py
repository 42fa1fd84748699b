"""A worker's host vanishes without a word: its link goes down. Within a minute the worker has an error, and the barrier
of the others no longer waits for it. Two network namespaces with a link between them; needs root."""
import os
import subprocess
import sys
import time

BUILD = os.path.dirname(os.path.abspath(os.environ["SHOAL_BIN"]))
PYTHON = os.path.join(BUILD, "python")
sys.path.insert(0, PYTHON)
try:
    import numpy  # noqa: F401
    import shoal.ps  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NEAR, FAR = f"shoal-near-{os.getpid()}", f"shoal-far-{os.getpid()}"
PATIENCE = 90  # seconds; without probes it would be a quarter of an hour

SERVER = """
server = shoal.ps.Server(token="t", workers=2, host="10.231.7.1")
print(server.address, flush=True)
sys.stdin.readline()
"""
# Its pull is under way when the link goes, its connection to the server is idle after that.
FAR_WORKER = """
client = shoal.ps.connect([sys.argv[2]], token="t", index=1, reconnect_timeout=2)
table = client.table("t", dim=1, rows=10)
table.push([1], np.ones((1, 1), np.float32))
print("there", flush=True)
sys.stdin.readline()
try:
    while True:
        table.pull([1], timeout=300)
except ConnectionError as error:
    print("error", error, flush=True)
"""
NEAR_WORKER = """
client = shoal.ps.connect([sys.argv[2]], token="t", index=0)
table = client.table("t", dim=1, rows=10)
print("there", flush=True)
client.barrier("b", timeout=300)
print("passed", flush=True)
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def start(namespace, code, *arguments):
    head = "import sys; sys.path.insert(0, sys.argv[1])\nimport numpy as np\nimport shoal.ps\n"
    return subprocess.Popen(["ip", "netns", "exec", namespace, sys.executable, "-B", "-c", head + code, PYTHON,
                             *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process):
    return process.stdout.readline().strip()


def main():
    try:
        ip("netns", "add", NEAR)
        ip("netns", "add", FAR)
    except (OSError, subprocess.CalledProcessError) as refused:
        subprocess.run(["ip", "netns", "del", NEAR], check=False, stderr=subprocess.DEVNULL)
        print(f"skipped: network namespaces cannot be made here: {refused}")
        sys.exit(77)
    started = []
    try:
        ip("-n", NEAR, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", FAR)
        for namespace, device, address in ((NEAR, "near", "10.231.7.1/24"), (FAR, "far", "10.231.7.2/24")):
            ip("-n", namespace, "addr", "add", address, "dev", device)
            ip("-n", namespace, "link", "set", device, "up")
            ip("-n", namespace, "link", "set", "lo", "up")
        started.append(start(NEAR, SERVER))
        address = line(started[0])
        far, near = start(FAR, FAR_WORKER, address), start(NEAR, NEAR_WORKER, address)
        started += [far, near]
        assert line(far) == "there" and line(near) == "there"
        ip("-n", FAR, "link", "set", "far", "down")
        began = time.monotonic()
        far.stdin.write("\n")
        far.stdin.flush()
        said = line(far)
        heard = time.monotonic() - began
        assert said.startswith("error") and "server 0" in said, said
        assert line(near) == "passed"
        passed = time.monotonic() - began
        print(f"the worker had its error after {heard:.0f} s, the barrier passed after {passed:.0f} s")
        assert heard < PATIENCE and passed < PATIENCE
    finally:
        for process in started:
            process.kill()
            process.wait()
        for namespace in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", namespace], check=False)


if __name__ == "__main__":
    main()
