"""Arrays that `import shoal.ps` cannot read as they lie are refused with what they are; tables that no machine holds too."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bindings import expect_error, np, shoal  # noqa: E402


def test_other_byte_orders_are_refused(table):
    ones = np.ones((2, 4), np.float32)
    keys = np.array([1, 2])
    expect_error(ValueError, "big-endian", lambda: table.pull(keys.astype(">i8")))
    expect_error(ValueError, "big-endian", lambda: table.pull(keys.astype(">u4")))
    expect_error(ValueError, "big-endian", lambda: table.push(keys, ones.astype(">f4")))
    expect_error(ValueError, "big-endian", lambda: table.pull(keys, ones.astype(">f4")))
    table.pull(keys.astype("<i8"), ones.astype("<f4"))
    table.pull(keys.astype("=u4"))


def test_elements_of_other_kinds_are_refused(table):
    ones = np.ones((2, 4), np.float32)
    keys = np.array([1, 2])
    for strange in (np.zeros(3, "S0"), np.zeros(3, "V0"), np.zeros(2, "S8"), np.zeros(2, [("a", "i8")]),
                    np.zeros(2, "V8"), np.array([True, False]), np.zeros(2, np.complex64)):
        expect_error(ValueError, "keys: got", lambda strange=strange: table.pull(strange, ones))
        expect_error(ValueError, "deltas: got", lambda strange=strange: table.push(keys, strange))
        expect_error(ValueError, "out: got", lambda strange=strange: table.pull(keys, strange))
    records = np.zeros(2, [("key", "i8"), ("more", "i4")])
    expect_error(ValueError, "keys: got", lambda: table.pull(records["key"], ones))


def test_only_whole_numbers_are_row_numbers(table):
    for strange in ([1.5], [1.0, 2.0], ["1"], [True], [None], [1, -2**70]):
        expect_error(ValueError, "expected whole numbers", lambda strange=strange: table.pull(strange))
    expect_error(ValueError, "negative", lambda: table.pull([-1]))
    assert table.pull([1, 2]).shape == table.pull((1, 2)).shape == table.pull(range(1, 3)).shape == (2, 4)


def test_keys_beyond_63_bits_in_a_list(client):
    sparse = client.table("far", dim=1)
    sparse.push([2**64 - 1], np.ones((1, 1), np.float32))
    assert sparse.pull(np.array([2**64 - 1], np.uint64)) == 1
    mixed = sparse.pull([2**64 - 1, 0])  # numpy alone reads these as floats
    assert mixed[0, 0] == 1 and mixed[1, 0] == 0, mixed


def test_rows_that_lie_across_are_refused(table):
    keys = np.arange(3)
    for action in (lambda across: table.push(keys, across), lambda across: table.pull(keys, across)):
        expect_error(ValueError, "got float32 of shape (4, 3), expected contiguous float32, 3 rows of 4",
                     lambda action=action: action(np.ones((4, 3), np.float32)))
        for shape in ((3, 4), (12,), (1, 3, 4), (3, 2, 2), (3, 4, 1)):
            action(np.zeros(shape, np.float32))


def test_arguments_that_do_not_fit_are_named(client):
    expect_error(ValueError, "port: got 70000, expected a whole number from 0 to 65535",
                 lambda: shoal.ps.Server(token="t", port=70000))
    expect_error(ValueError, "staleness: got -1,",
                 lambda: shoal.ps.connect(["h:1"], token="t", consistency="ssp", staleness=-1))
    expect_error(ValueError, "seed: got -1,", lambda: client.table("x", 2, uniform=(0, 1), seed=-1))
    expect_error(TypeError, "lr: got str, expected a number", lambda: client.table("x", 2, optimizer="sgd", lr="0.1"))
    expect_error(TypeError, "token: got int, expected a str", lambda: shoal.ps.Server(token=5))
    expect_error(ValueError, "token: got None", lambda: shoal.ps.connect(["h:1"]))


def test_parameters_are_those_of_the_optimizer(client):
    for optimizer, wrong, takes in (("add", "lr", "none"), ("combine", "lr", "none"), ("sgd", "momentum", "lr"), ("adam", "momentum", "lr, beta1, beta2, eps"),
                                    ("ftrl", "eps", "lr, beta, l1, l2"), ("sgd", "function", "lr")):
        expect_error(TypeError, f"'{wrong}', expected some of: {takes}",
                     lambda optimizer=optimizer, wrong=wrong: client.table("p", 2, optimizer=optimizer, **{wrong: 0.5}))
    client.table("adam", 2, optimizer="adam", lr=0.5)
    client.table("adam", 2, optimizer="adam", lr=0.5, eps=1e-8)  # C++'s default


def test_a_mismatch_names_what_differs(client):
    client.table("m", dim=2, rows=10, optimizer="sgd", lr=0.5)
    expect_error(ValueError, "lr is 0.5, asked for 0.25", lambda: client.table("m", 2, 10, optimizer="sgd", lr=0.25))
    expect_error(ValueError, "rows is 10, asked for none (sparse)", lambda: client.table("m", 2, optimizer="sgd", lr=0.5))
    expect_error(ValueError, "dim is 2, asked for 3; optimizer is sgd, asked for adagrad",
                 lambda: client.table("m", 3, 10, optimizer="adagrad", lr=0.5))


def test_addresses_are_checked_at_once():
    began = time.monotonic()
    expect_error(TypeError, "expected a list of addresses, such as ['h:1']", lambda: shoal.ps.connect("h:1", token="t"))
    for wrong in ("localhost", "localhost:0", "localhost:65536", "localhost:x", "::1:80"):
        expect_error(ValueError, "servers[0]: ", lambda wrong=wrong: shoal.ps.connect([wrong], token="t"))
    assert time.monotonic() - began < 10


def test_nothing_is_nothing(table):
    for keys in (np.array([], np.int64), np.zeros((3, 0), np.int32), []):
        rows = table.pull(keys)
        assert rows.size == 0 and rows.dtype == np.float32, rows
        table.push(keys, np.zeros((0, 4), np.float32))
        table.push_pull(keys, np.zeros((0, 4), np.float32))
    expect_error(ValueError, "deltas: got float32 of shape (0, 4)",
                 lambda: table.push(np.array([1]), np.zeros((0, 4), np.float32)))


def test_a_table_that_no_machine_holds_is_refused(client):
    began = time.monotonic()
    for rows in (2**40, 2**39):
        for uniform in (None, (-1, 1)):
            expect_error(shoal.ps.Error, "a sparse table",
                         lambda rows=rows, uniform=uniform: client.table("huge", dim=4, rows=rows, uniform=uniform))
    assert time.monotonic() - began < 10
    assert (client.table("huge", dim=4, rows=8).pull([7]) == 0).all()


def test_two_servers_do_not_share_a_port(address):
    port = int(address.rsplit(":", 1)[1])
    expect_error(Exception, address, lambda: shoal.ps.Server(token="t", port=port))


def main():
    with shoal.ps.Server(token="t") as server:
        client = shoal.ps.connect([server.address], token="t")
        given = {"client": client, "table": client.table("t", dim=4, rows=8), "address": server.address}
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(*(given[argument] for argument in test.__code__.co_varnames[:test.__code__.co_argcount]))
                print(f"{name}: ok", flush=True)
        client.close()


if __name__ == "__main__":
    main()
