"""`import shoal.ps` with numpy: every operation, memory without copies, what is refused, the GIL, Ctrl-C, the wheel."""
import array
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bindings import PATH, expect_error, np, shoal  # noqa: E402


def cluster(servers=2, **options):
    started = [shoal.ps.Server(token="t", index=i, servers=servers, **options) for i in range(servers)]
    return started, [server.address for server in started]


def test_operations():
    servers, addresses = cluster()
    client = shoal.ps.connect(addresses, token="t")
    table = client.table("dense", dim=4, rows=1000, optimizer="sgd", lr=0.5)
    keys = np.array([999, 0, 7])
    assert (table.pull(keys) == 0).all()
    rows = table.push_pull(keys, np.ones((3, 4), np.float32))
    assert rows.shape == (3, 4) and (rows == -0.5).all(), rows
    table.push([7, 7], np.ones((2, 4), np.float32))
    assert (table.pull([7]) == -1.5).all()
    batch = table.pull(np.array([[7, 0], [999, 7]], np.int32))
    assert batch.shape == (2, 2, 4) and batch[0, 1, 0] == -0.5, batch
    sparse = client.table("sparse", dim=3, optimizer="adagrad", lr=0.1, eps=1e-8, uniform=(-1, 1), seed=3)
    far = np.array([2**63 - 1, 12345678901], np.uint64)
    before = sparse.pull(far)
    assert (np.abs(before) <= 1).all() and (before != 0).all()
    gradient = np.full((2, 3), 2.0, np.float32)
    sparse.push(far, gradient)
    sparse.push(far, gradient)
    expected = before - 0.1 * (1 + 1 / np.sqrt(2))
    assert np.allclose(sparse.pull(far), expected, atol=1e-6)
    assert client.counters["rows_pushed"] == 9 and servers[0].counters["requests"] > 0
    client.put_blob("b", b"\0bytes")
    assert client.get_blob("b") == b"\0bytes"
    client.flush()
    client.leave()


def test_memory_is_shared():
    _, addresses = cluster(1)
    client = shoal.ps.connect(addresses, token="t")
    table = client.table("t", dim=2, rows=10)
    big = np.zeros((6, 2), np.float32)
    part = big[2:4]
    got = table.push_pull(np.array([1, 2]), np.array([[1, 2], [3, 4]], np.float32), part)
    assert got is part and big[2:4].tolist() == [[1, 2], [3, 4]] and big[:2].sum() == 0
    out = array.array("f", [0] * 4)
    table.pull(array.array("Q", [2, 1]), out)
    assert list(out) == [3, 4, 1, 2]
    requests = []
    for i in range(200):  # the request alone keeps keys and deltas alive
        requests.append(table.push(np.array([3]), np.ones((1, 2), np.float32), wait=False))
        gc.collect() if i % 50 == 0 else None
    for request in requests[:100]:
        request.wait()
        assert request.done()
    del requests
    assert (table.pull([3]) == 200).all()


def test_refusals():
    _, addresses = cluster(1)
    client = shoal.ps.connect(addresses, token="t")
    table = client.table("t", dim=2, rows=10)
    ones = np.ones((2, 2), np.float32)
    expect_error(ValueError, "got float64", lambda: table.push([1, 2], ones.astype(np.float64)))
    expect_error(ValueError, "expected contiguous float32, 3 rows of 2", lambda: table.push([1, 2, 3], ones))
    expect_error(ValueError, "not contiguous", lambda: table.push([1, 2], np.ones((4, 2), np.float32)[::2]))
    expect_error(ValueError, "negative", lambda: table.pull([-1]))
    expect_error(ValueError, "keys: got float32", lambda: table.pull(np.ones(2, np.float32), ones))
    expect_error(ValueError, "beyond a dense table of 10 rows", lambda: table.pull([10]))
    expect_error(TypeError, "got dict", lambda: table.push({}, ones))
    frozen = np.zeros((1, 2), np.float32)
    frozen.flags.writeable = False
    expect_error(ValueError, "read-only", lambda: table.pull([1], frozen))
    expect_error(ValueError, "expected add, sgd", lambda: client.table("u", 2, optimizer="sdg"))
    expect_error(TypeError, "no parameter 'rate'", lambda: client.table("u", 2, optimizer="sgd", rate=1))
    expect_error(ValueError, "", lambda: client.table("t", 3, rows=10))
    expect_error(KeyError, "nothing", lambda: client.get_blob("nothing"))
    expect_error(PermissionError, "token", lambda: shoal.ps.connect(addresses, token="wrong", timeout=5))
    expect_error(ConnectionError, "127.0.0.1:1", lambda: shoal.ps.connect(["127.0.0.1:1"], token="t", timeout=0.3))
    expect_error(shoal.ps.Error, "shoal run", shoal.ps.connect)
    client.close()
    expect_error(ValueError, "closed", lambda: table.pull([1]))


def test_workers_wait_without_the_gil():
    _, addresses = cluster(2, workers=3)

    def work(index, errors):
        try:
            with shoal.ps.connect(addresses, token="t", index=index, consistency="bsp") as client:
                table = client.table("t", dim=8, rows=100)
                keys = np.arange(100)
                for n in range(1, 11):
                    table.push(keys, np.ones((100, 8), np.float32))
                    client.clock(n)
                client.barrier("end")
                if (table.pull(keys) != 30).any():
                    errors.append("a row is not the sum of all pushes")
        except Exception:  # noqa: BLE001
            errors.append(traceback.format_exc())

    errors = []
    threads = [threading.Thread(target=work, args=(i, errors)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors, errors[0]


def test_interrupt():
    code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport shoal.ps, numpy as np\n"
            "s = shoal.ps.Server(token='t', workers=2)\nc = shoal.ps.connect([s.address], token='t')\n"
            "t = c.table('t', 2, rows=5)\nr = t.pull([1], wait=False); r.wait()\n"
            "s.close()\nprint('waiting', flush=True)\nt.pull([1])\n")
    child = subprocess.Popen([sys.executable, "-c", code, sys.path[0]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"waiting\n"
    end = time.monotonic() + 20
    while child.poll() is None and time.monotonic() < end:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(0.3)
        except subprocess.TimeoutExpired:
            pass
    assert b"KeyboardInterrupt" in child.stderr.read(), child.returncode


def stopped_server():
    """A server in a process of its own that stands still; SIGCONT wakes it."""
    code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport shoal.ps\n"
            "s = shoal.ps.Server(token='t', workers=2)\nprint(s.address, flush=True)\nsys.stdin.read()\n")
    child = subprocess.Popen([sys.executable, "-c", code, sys.path[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return child, child.stdout.readline().decode().strip()


def test_timeouts_at_a_server_that_stands_still():
    for shared in (True, False):
        child, address = stopped_server()
        try:
            client = shoal.ps.connect([address], token="t", index=0, shared_memory=shared)
            table = client.table("t", dim=2, rows=10)
            table.push([1], np.ones((1, 2), np.float32), timeout=float("inf"))
            child.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
            began = time.monotonic()
            expect_error(TimeoutError, "server 0", lambda: table.pull([1], timeout=0.3))
            expect_error(TimeoutError, "server 0", lambda: client.barrier("b", timeout=0.3))
            expect_error(TimeoutError, "server 0", lambda: client.checkpoint(timeout=0.3))
            assert time.monotonic() - began < 10, time.monotonic() - began
            child.send_signal(signal.SIGCONT)
            assert (table.pull([1]) == 1).all()
            client.close()
        finally:
            child.kill()
            child.wait()


def test_a_barrier_after_its_timeout():
    _, addresses = cluster(1, workers=2)
    first = shoal.ps.connect(addresses, token="t", index=0)
    second = shoal.ps.connect(addresses, token="t", index=1)
    expect_error(TimeoutError, "worker 1 has not entered", lambda: first.barrier("b", timeout=0.1))
    expect_error(TimeoutError, "worker 0 has not entered", lambda: second.barrier("b", timeout=0.1))
    thread = threading.Thread(target=lambda: second.barrier("b", timeout=30))
    thread.start()
    first.barrier("b", timeout=30)
    thread.join()
    expect_error(ValueError, "nan", lambda: first.barrier("b", timeout=float("nan")))


def test_interrupted_waits():
    for wait in ("c.barrier('b')", "c.clock(1)",
                 "shoal.ps.connect(['127.0.0.1:1'], token='t', timeout=float('inf'))"):
        code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport shoal.ps\n"
                "s = shoal.ps.Server(token='t', workers=2)\n"
                "c = shoal.ps.connect([s.address], token='t', index=0, consistency='bsp')\n"
                f"print('waiting', flush=True)\n{wait}\n")
        child = subprocess.Popen([sys.executable, "-c", code, sys.path[0]], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        try:
            assert child.stdout.readline() == b"waiting\n"
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=20)
            assert b"KeyboardInterrupt" in said, (wait, said)
        finally:
            child.kill()


def test_checkpoint():
    with tempfile.TemporaryDirectory() as directory:
        servers, addresses = cluster(2, checkpoint_dir=directory)
        client = shoal.ps.connect(addresses, token="t")
        table = client.table("t", dim=2, rows=10)
        table.push(np.arange(10), np.ones((10, 2), np.float32))
        client.set_progress(b"epoch 1")
        saved = client.checkpoint()
        assert saved.bytes > 0
        client.close()
        for server in servers:
            server.close()
        with shoal.ps.Server(token="t", checkpoint_dir=directory) as alone:
            assert alone.restored_checkpoint == saved.id
            client = shoal.ps.connect([alone.address], token="t")
            assert (client.table("t", dim=2, rows=10).pull(np.arange(10)) == 1).all()
            assert client.get_progress(0) == b"epoch 1"


def test_the_guide():
    """The first Python program of docs/ps.md is one."""
    with open(os.path.join(os.environ["SHOAL_SOURCE"], "docs", "ps.md"), encoding="utf-8") as f:
        source = f.read().split("```python\n")[1].split("```")[0]
    exec(compile(source, "docs/ps.md", "exec"), {})  # noqa: S102


def test_wheel():
    maker = os.path.join(os.environ["SHOAL_SOURCE"], "python", "make_wheel.py")
    with tempfile.TemporaryDirectory() as directory:
        package = os.path.join(PATH, "shoal")
        wheel = subprocess.check_output([sys.executable, maker, package, "0.1.0", directory], text=True).strip()
        place = os.path.join(directory, "site")
        subprocess.check_call([sys.executable, "-m", "zipfile", "-e", wheel, place])
        code = "import shoal.ps; assert shoal.ps.__file__.startswith({!r}); shoal.ps.Server(token='t').close()"
        subprocess.check_call([sys.executable, "-c", code.format(place)], env={**os.environ, "PYTHONPATH": place})


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.monotonic()
            test()
            print(f"{name}: ok, {time.monotonic() - began:.2f} s", flush=True)


if __name__ == "__main__":
    main()
