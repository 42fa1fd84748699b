"""Clients and servers of `import shoal.ps` in forked children, as multiprocessing and PyTorch's DataLoader make them: every
call is an error there, and nothing that the parent pushed is lost."""
import gc
import multiprocessing
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bindings import np, shoal  # noqa: E402

KEYS = np.arange(8)
ONES = np.ones((8, 4), np.float32)


def in_child(action, seconds=30):
    """Runs it in a forked child, which then ends as Python programs end, with their destructors."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            gc.collect()
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.exit(code)
    end = time.monotonic() + seconds
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            assert status == 0, f"the child ended with {status:#x}"
            return
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            raise AssertionError("the child did not end")
        time.sleep(0.002)  # poll


def refused(action):
    try:
        action()
    except shoal.ps.Error as error:
        assert "a child that it forked" in str(error) and "index=-1" in str(error), error
        return
    raise AssertionError("the child was not refused")


def push_between_children(shared_memory):
    with shoal.ps.Server(token="t") as server:
        client = shoal.ps.connect([server.address], token="t", shared_memory=shared_memory)
        table = client.table("t", dim=4, rows=8)
        requests = []

        def use_everything():
            refused(lambda: table.pull(KEYS))
            refused(lambda: table.push(KEYS, ONES))
            refused(lambda: table.push_pull(KEYS, ONES))
            refused(lambda: client.table("u", dim=4, rows=8))
            for request in requests:
                refused(request.wait)
            requests.clear()
            refused(client.flush)
            refused(lambda: client.clock(1))
            refused(lambda: client.barrier("b"))
            refused(lambda: client.put_blob("b", b""))
            refused(lambda: client.set_progress(b""))
            refused(client.checkpoint)
            refused(client.leave)
            refused(lambda: client.counters)
            refused(lambda: server.address)

        for i in range(50):
            table.push(KEYS, ONES)
            if i % 20 == 0:
                in_child(use_everything)
            if i % 20 == 10:
                requests = [table.push(KEYS, ONES, wait=False) for _ in range(2)]
                in_child(use_everything)
                for request in requests:
                    request.wait()
                requests = []
        # Closing a copy does not close the original.
        in_child(lambda: (client.close(), server.close()))
        table.push(KEYS, ONES)
        rows = table.pull(KEYS)
        assert (rows == 55).all(), rows
        client.leave()
        client.close()


def test_a_child_is_refused_and_takes_nothing_from_its_parent():
    push_between_children(True)
    push_between_children(False)


def test_a_child_makes_a_client_of_its_own():
    with shoal.ps.Server(token="t") as server:
        address = server.address
        client = shoal.ps.connect([address], token="t")
        table = client.table("t", dim=4, rows=8)
        table.push(KEYS, ONES)

        def observe():
            mine = shoal.ps.connect([address], token="t", index=-1).table("t", dim=4, rows=8)
            assert (mine.pull(KEYS) == 1).all()
            mine.push(KEYS, ONES)

        def replace_the_parent():
            try:
                shoal.ps.connect([address], token="t")
            except shoal.ps.Error as error:
                assert f"process {os.getppid()} is worker 0" in str(error) and "-1 for" in str(error), error
                return
            raise AssertionError("the child took its parent's place")

        def work(index, rows):
            with shoal.ps.connect([address], token="t", index=index) as mine:
                own = mine.table("t", dim=4, rows=8)
                own.push(KEYS, ONES)
                assert (own.pull(KEYS) == rows).all()

        in_child(observe)
        in_child(replace_the_parent)
        in_child(lambda: work(1, 3))
        table.push(KEYS, ONES)
        assert (table.pull(KEYS) == 4).all()
        client.close()
        in_child(lambda: work(0, 5))  # the place is free now


def test_a_child_that_lives_on_does_not_keep_a_closed_server_alive():
    server = shoal.ps.Server(token="t")
    address = server.address
    client = shoal.ps.connect([address], token="t", reconnect_timeout=0.2)
    table = client.table("t", dim=4, rows=8)
    wait, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(tell)
        os.read(wait, 1)
        os._exit(0)
    try:
        server.close()
        try:
            table.pull(KEYS, timeout=20)
            raise AssertionError("a closed server answered")
        except ConnectionError:
            pass
        with shoal.ps.Server(token="t", port=int(address.rsplit(":", 1)[1])) as second:
            shoal.ps.connect([second.address], token="t").close()
    finally:
        os.close(tell)
        os.waitpid(child, 0)
        os.close(wait)
    client.close()


table_of_pool = None


def pull_in_pool(_):
    return table_of_pool.pull(KEYS)


def test_a_pool_hands_the_error_back():
    global table_of_pool
    with shoal.ps.Server(token="t") as server:
        client = shoal.ps.connect([server.address], token="t")
        table_of_pool = client.table("t", dim=4, rows=8)
        table_of_pool.push(KEYS, ONES)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for result in [pool.apply_async(pull_in_pool, (i,)) for i in range(4)]:
                refused(lambda result=result: result.get(30))
        table_of_pool.push(KEYS, ONES)
        assert (table_of_pool.pull(KEYS) == 2).all()
        client.close()


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.monotonic()
            test()
            print(f"{name}: ok, {time.monotonic() - began:.2f} s", flush=True)


if __name__ == "__main__":
    main()
