"""A program written for ps-lite runs over shoal/ps_lite_compat.h: as processes with DMLC_… variables, and as a job."""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(os.environ["SHOAL_BIN"]))


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"lite_test: {' '.join(command)} ended with {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def build(root):
    if not os.path.exists(os.path.join(BUILD, "src", "door", "libshoal_ps.so")):
        print("skipped: the library has not been built here")
        sys.exit(77)
    # An application without the sanitizer cannot load a sanitized library.
    sanitize = re.search(r"^SHOAL_SANITIZE:STRING=(.*)$", run("cmake", "-LA", "-N", BUILD), re.M).group(1)
    prefix = os.path.join(root, "prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    for app in ("app", "app2016"):
        run("cmake", "-S", os.path.join(HERE, app), "-B", os.path.join(root, "build", app), f"-DCMAKE_PREFIX_PATH={prefix}",
            "-DCMAKE_BUILD_TYPE=Debug", "-G", "Ninja", f"-DCMAKE_CXX_FLAGS={'-fsanitize=' + sanitize if sanitize else ''}")
        run("cmake", "--build", os.path.join(root, "build", app))
    return os.path.join(root, "build", "app", "lite_app")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Nodes:
    """The processes of one job, as ps-lite's tests/local.sh starts them."""

    all = []  # for the end of a test that failed

    def __init__(self, app, what, servers, workers, root, port=None, name=None, schedulers=1, session=False,
                 extra=None, arguments=None):
        self.env = {**os.environ, "DMLC_NUM_SERVER": str(servers), "DMLC_NUM_WORKER": str(workers),
                    "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(port or free_port()), **(extra or {})}
        self.processes = []
        Nodes.all.append(self)
        for role, count in (("worker", workers), ("server", servers), ("scheduler", schedulers)):
            for index in range(count):
                log = os.path.join(root, f"{name or what}-{role}-{index}.log")
                with open(log, "wb") as out:
                    process = subprocess.Popen([app, *([what] if arguments is None else arguments)], env={**self.env, "DMLC_ROLE": role}, stdout=out,
                                               stderr=subprocess.STDOUT, start_new_session=session)
                process.role, process.log = role, log
                self.processes.append(process)

    def of(self, role):
        return [p for p in self.processes if p.role == role]

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        for process in self.processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill()
                sys.exit(f"lite_test: {process.role} did not end\n{self.said()}")
        return [p.returncode for p in self.processes]

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def said(self):
        return "".join(f"--- {p.log}\n" + open(p.log, errors="replace").read() for p in self.processes)


def check_good_ends(app, root):
    for what, servers, workers in (("sum", 2, 3), ("sum", 1, 1), ("lens", 3, 2), ("simple", 2, 2), ("early", 2, 2),
                                   ("threads", 2, 2), ("fork", 2, 2)):
        began = time.monotonic()
        nodes = Nodes(app, what, servers, workers, root)
        codes = nodes.wait()
        assert codes == [0] * len(codes), (what, codes, nodes.said())
        print(f"{what}: {servers} servers and {workers} workers, {time.monotonic() - began:.2f} s", flush=True)


def check_a_death(app, root):
    """With ps-lite everybody would wait for ever."""
    nodes = Nodes(app, "slow", 2, 2, root)
    ready = harness.poll_until(lambda: all("waiting" in open(p.log).read() for p in nodes.of("worker")), 30)
    assert ready, nodes.said()
    nodes.of("server")[0].send_signal(signal.SIGKILL)
    nodes.wait(20)
    # Who ends because of it may be seen to go before the server is.
    texts = []
    for process in nodes.of("worker") + nodes.of("scheduler"):
        texts.append(open(process.log).read())
        assert process.returncode == 3 and "has gone away without Finalize" in texts[-1], (process.role, texts[-1])
        assert "error: " in texts[-1], texts[-1]
    assert any("server " in text for text in texts), texts


def check_refusals(app, root):
    env = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
    done = subprocess.run([app], env=env, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "DMLC_ROLE" in done.stderr, done
    env.update(DMLC_ROLE="scheduler", DMLC_NUM_SERVER="1", DMLC_NUM_WORKER="1", DMLC_PS_ROOT_URI="0.0.0.0",
               DMLC_PS_ROOT_PORT="0")
    done = subprocess.run([app], env=env, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "SHOAL_TOKEN_FILE" in done.stderr, done
    empty = os.path.join(root, "empty")
    with open(empty, "wb") as f:
        f.write(b"\n")
    done = subprocess.run([app], env={**env, "SHOAL_TOKEN_FILE": empty}, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "is empty" in done.stderr, done


def status_of(process, field):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as f:
        return int(next(line.split()[1] for line in f if line.startswith(field)))


def check_strangers(app, root):
    """Strangers who know no token, who send rubbish, nothing, or go away at once, harm nothing and cost nothing."""
    nodes = Nodes(app, "slow", 1, 1, root)
    assert harness.poll_until(lambda: "waiting" in open(nodes.of("worker")[0].log).read(), 30), nodes.said()
    scheduler = nodes.of("scheduler")[0]
    threads, memory = status_of(scheduler, "Threads:"), status_of(scheduler, "VmData:")
    address = ("127.0.0.1", int(nodes.env["DMLC_PS_ROOT_PORT"]))
    silent = [socket.create_connection(address) for _ in range(100)]
    for _ in range(300):
        socket.create_connection(address).close()
    with socket.create_connection(address) as stranger:
        stranger.sendall(b"x" * 4096)
        stranger.settimeout(10)
        try:
            while stranger.recv(4096):
                pass
        except ConnectionResetError:
            pass
    assert status_of(scheduler, "Threads:") == threads, nodes.said()
    assert status_of(scheduler, "VmData:") < memory + 8192, nodes.said()
    for one in silent:
        one.close()
    assert all(p.poll() is None for p in nodes.processes), nodes.said()
    nodes.kill()


def reachable(port):
    try:
        socket.create_connection(("127.0.0.1", int(port))).close()
        return True
    except ConnectionRefusedError:
        return False


def check_two_jobs_on_one_port(app, root):
    """Neither gets the other's nodes: what comes later is refused, with a sentence."""
    first = Nodes(app, "slow", 1, 1, root, name="first")
    assert harness.poll_until(lambda: "waiting" in open(first.of("worker")[0].log).read(), 30), first.said()
    port = first.env["DMLC_PS_ROOT_PORT"]
    stranger = Nodes(app, "slow", 1, 1, root, port=port, name="stranger", session=True)
    assert stranger.wait(30) == [3, 3, 3], stranger.said()
    assert "address already in use" in open(stranger.of("scheduler")[0].log).read().lower(), stranger.said()
    for role in ("server", "worker"):
        assert "SHOAL_TOKEN_FILE" in open(stranger.of(role)[0].log).read(), stranger.said()
    assert all(p.poll() is None for p in first.processes), first.said()
    # Of the same session they cannot be told apart: neither goes on while nodes gather.
    counts = {"DMLC_NUM_SERVER": "1", "DMLC_NUM_WORKER": "2"}
    gathering = Nodes(app, "slow", 1, 1, root, name="gathering", extra=counts)
    listens = harness.poll_until(lambda: reachable(gathering.env["DMLC_PS_ROOT_PORT"]), 30)
    assert listens, gathering.said()
    also = Nodes(app, "slow", 0, 0, root, name="also", port=gathering.env["DMLC_PS_ROOT_PORT"], extra=counts)
    schedulers = gathering.of("scheduler") + also.of("scheduler")
    ended = harness.poll_until(lambda: all(p.poll() is not None for p in schedulers), 30)
    said = gathering.said() + also.said()
    assert ended and [p.returncode for p in schedulers] == [3, 3], said
    assert "another ps-lite job was started" in said, said
    for nodes in (first, gathering, also):
        nodes.kill()
    assert 0 not in [p.returncode for p in gathering.processes + also.processes], said


def check_short_lens(app, root):
    """Room for one length of 100,000: the others were written behind it."""
    nodes = Nodes(app, "short", 1, 1, root)
    worker = nodes.of("worker")[0]
    nodes.wait(30)
    said = open(worker.log).read()
    assert worker.returncode == -signal.SIGABRT and "lens: got room for 1 lengths and 100000 keys" in said, said


def check_a_program_of_2016(app, root):
    """Start() and Finalize() without arguments, IsServer() before Start(), "ps/ps.h" as it is included there."""
    old = os.path.join(os.path.dirname(os.path.dirname(app)), "app2016", "app2016")
    nodes = Nodes(old, "", 2, 2, root, name="2016", arguments=[])
    codes = nodes.wait()
    assert codes == [0] * len(codes), (codes, nodes.said())
    assert all("finished" in open(p.log).read() for p in nodes.processes), nodes.said()
    # Its servers are never made: with ps-lite's workers that would be for ever.
    nodes = Nodes(old, "serverless", 2, 1, root, extra={"SHOAL_PS_LITE_APP_TIMEOUT": "1"})
    codes = nodes.wait(30)
    assert 0 not in codes, (codes, nodes.said())
    assert "has made no KVServer(0)" in open(nodes.of("worker")[0].log).read(), nodes.said()


JOB = """
name: lite
command: [{app}, sum]
roles:
  scheduler: {{replicas: 1, ports: [ps]}}
  server: {{replicas: 2, ports: [ps]}}
  worker: {{replicas: 2}}
success: {{all: [scheduler, server, worker]}}
"""


def check_job(app, root):
    with harness.Home(os.environ["SHOAL_BIN"]) as home:
        path = home.write("job.yaml", JOB.format(app=app))
        done = subprocess.run([home.binary, "run", path], env=home.environ(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=100)
        assert done.returncode == 0, done.stdout


def main():
    with tempfile.TemporaryDirectory(prefix="shoal-lite-") as root:
        app = build(root)
        for check in (check_good_ends, check_a_death, check_refusals, check_strangers, check_two_jobs_on_one_port,
                      check_short_lens, check_a_program_of_2016, check_job):
            try:
                check(app, root)
            finally:
                for nodes in Nodes.all:
                    nodes.kill()
            print(f"{check.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
