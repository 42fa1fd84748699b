"""ps-lite beside our parameter server: fetched, compiled and run for bench/ps.py.

PyPI's `byteps` contains ps-lite's source (a fork of 2022, over ZeroMQ); it is fetched into the cache directory, and
bench/ps_lite_peer.cc compiled against it there. Nothing of it is in this repository."""
import glob
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile

import measure

FOLDER = os.path.join(measure.CACHE, "ps-lite")
REQUIREMENT = "byteps==0.2.5.post15"
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ps_lite_peer.cc")


def _fetch():
    """ps-lite's folder in the cache, or a sentence with the reason for its absence."""
    sources = os.path.join(FOLDER, "ps-lite")
    if os.path.exists(os.path.join(sources, "include", "ps", "ps.h")):
        return sources, None
    print(f"ps-lite: fetching {REQUIREMENT}", file=sys.stderr)
    os.makedirs(FOLDER, exist_ok=True)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                           "--no-binary", "byteps", REQUIREMENT, "--dest", FOLDER],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    archives = glob.glob(os.path.join(FOLDER, "byteps-*.tar.gz"))
    if done.returncode != 0 or not archives:
        return None, f"{REQUIREMENT} cannot be had: {done.stdout.strip().splitlines()[-1:]}"
    with tarfile.open(archives[0]) as archive:
        members = [m for m in archive.getmembers() if "/3rdparty/ps-lite/" in m.name and m.isfile() and ".." not in m.name]
        for member in members:
            member.name = os.path.join("ps-lite", member.name.split("/3rdparty/ps-lite/", 1)[1])
            archive.extract(member, FOLDER)
    os.remove(archives[0])
    return sources, None


def ensure():
    """The peer's program, compiled if it is missing, and None; or None and the reason."""
    if shutil.which("c++") is None:
        return None, "there is no compiler"
    sources, why = _fetch()
    if sources is None:
        return None, why
    with open(PEER, "rb") as f:
        program = os.path.join(FOLDER, "peer-" + hashlib.sha256(f.read()).hexdigest()[:12])
    if os.path.exists(program):
        return program, None
    print("ps-lite: compiling", file=sys.stderr)
    cc = [os.path.join(sources, "src", name) for name in ("customer.cc", "postoffice.cc", "van.cc")]
    done = subprocess.run(["c++", "-std=c++17", "-O3", "-march=native", "-w", "-pthread", f"-I{sources}/src",
                           f"-I{sources}/include", *cc, PEER, "-lzmq", "-o", program],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        return None, "it does not compile: " + " ".join(done.stdout.splitlines()[:3])
    return program, None


class Peer:
    """A scheduler, a server and a worker of ps-lite, on this host until close().

    This ps-lite's receiving threads never sleep, so all three are stopped but for their own rounds, and the scheduler, which
    nobody needs once all have met, from then on: with it there would be three of them on two processors."""

    def __init__(self, program):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**os.environ, "DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "1", "DMLC_PS_ROOT_URI": "127.0.0.1",
                       "DMLC_PS_ROOT_PORT": str(port), "DMLC_NODE_HOST": "127.0.0.1"}
        self._processes = []
        for role in ("scheduler", "server", "worker"):
            self._processes.append(subprocess.Popen(
                [program], env={**environment, "DMLC_ROLE": role}, text=True, bufsize=1, stderr=subprocess.DEVNULL,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE if role == "worker" else subprocess.DEVNULL))
        self.worker = self._processes[-1]

    def pause(self):
        """Stops all of them."""
        for process in self._processes:
            process.send_signal(signal.SIGSTOP)

    def resume(self):
        """Resumes the server and the worker."""
        for process in self._processes[1:]:
            process.send_signal(signal.SIGCONT)

    def close(self):
        """Ends all three."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
