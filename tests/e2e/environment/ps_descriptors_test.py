"""A parameter server that has run out of descriptors waits for them quietly, and goes on when there are some again."""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bindings import shoal  # noqa: E402

SERVER = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import shoal.ps
server = shoal.ps.Server(token="t")
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
print(server.address, flush=True)
sys.stdin.read()
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    with subprocess.Popen([sys.executable, "-B", "-c", SERVER, sys.path[0]], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            address = server.stdout.readline().decode().strip()
            host, port = address.rsplit(":", 1)
            silent = [socket.create_connection((host, int(port))) for _ in range(80)]
            # Its only descriptors are taken; more than the handshake's deadline is not needed for this.
            before = cpu_seconds(server.pid)
            end = time.monotonic() + 2
            while time.monotonic() < end:
                time.sleep(0.1)  # what it uses meanwhile is measured
            used = (cpu_seconds(server.pid) - before) / 2
            assert used < 0.3, f"{used:.2f} of a core"
            for one in silent:
                one.close()
            client = shoal.ps.connect([address], token="t", timeout=20)
            client.table("t", dim=1, rows=1)
            client.close()
        finally:
            server.stdin.close()
            said = server.stderr.read().decode()
            server.wait()
    assert said.count("cannot accept connections") == 1, said
    print("ps_descriptors_test: ok")


if __name__ == "__main__":
    main()
