"""Programs with `import shoal.ps` that end, or hear Ctrl-C, while requests are under way."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bindings import PATH  # noqa: E402

BEGIN = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import shoal.ps
KEYS, ONES = np.arange(100), np.ones((100, 2), np.float32)
"""

# As PyTorch programs fetch rows ahead of the training.
DAEMON = BEGIN + """
server = shoal.ps.Server(token="t")
client = shoal.ps.connect([server.address], token="t")
table = client.table("t", dim=2, rows=100)
pushed = threading.Semaphore(0)

def push_for_ever():
    while True:
        table.push(KEYS, ONES)
        pushed.release()

for _ in range(2):
    threading.Thread(target=push_for_ever, daemon=True).start()
for _ in range(20):
    pushed.acquire()
print("trained", flush=True)
"""

SERVER = BEGIN + """
server = shoal.ps.Server(token="t")
print(server.address, flush=True)
sys.stdin.read()
"""

# Says that it is stuck once the window is full: no request has gone out for a while.
ISSUING = BEGIN + """
client = shoal.ps.connect([sys.argv[2]], token="t")
table = client.table("t", dim=2, rows=100)
print("connected", flush=True)
sys.stdin.readline()
issued = 0

def watch():
    seen = -1
    while issued != seen:
        seen = issued
        time.sleep(0.5)  # for so long nothing may have gone out
    print("stuck", flush=True)

threading.Thread(target=watch, daemon=True).start()
requests = []
while True:
    requests.append(table.push(KEYS, ONES, wait=False))
    issued += 1
"""


def start(code, *arguments):
    return subprocess.Popen([sys.executable, "-B", "-c", code, PATH, *arguments], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_daemon_thread_does_not_make_the_end_a_failure():
    for _ in range(3):
        child = start(DAEMON)
        out, errors = child.communicate(timeout=60)
        assert (child.returncode, out) == (0, "trained\n"), (child.returncode, out, errors)


def test_an_interrupt_while_requests_go_out():
    server = start(SERVER)
    address = server.stdout.readline().strip()
    child = start(ISSUING, address)
    try:
        assert child.stdout.readline() == "connected\n"
        server.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "stuck\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        assert "KeyboardInterrupt" in errors and "SystemError" not in errors, errors
    finally:
        for process in (child, server):
            process.kill()
            process.communicate()


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name}: ok", flush=True)
