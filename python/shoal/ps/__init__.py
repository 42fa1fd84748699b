"""Shoal's parameter server: tables of float rows on servers, pulled and pushed by any number of workers.

Stand-alone, server and worker in one program::

    import numpy as np
    import shoal.ps

    with shoal.ps.Server(token="secret") as server:
        client = shoal.ps.connect([server.address], token="secret")
        table = client.table("weights", dim=4, rows=1000, optimizer="sgd", lr=0.5)
        keys = np.array([7, 42])
        rows = table.push_pull(keys, np.ones((2, 4), np.float32))   # -> [[-0.5 ...], [-0.5 ...]]

Inside a task of a Shoal job (``shoal run job.yaml``) addresses, index and secret come from the environment::

    client = shoal.ps.connect()

Keys, deltas and out rows are used where they lie: numpy arrays, everything that speaks the buffer protocol, and CPU
tensors that speak DLPack (PyTorch, TensorFlow). Keys are int64 or uint64 (int32 and uint32 are widened), values
float32, all contiguous. The GIL is released while anything waits, and Ctrl-C is heard.

Errors: ValueError for what does not fit, TimeoutError, ConnectionError when a server is away for longer than
``reconnect_timeout``, PermissionError for a wrong token, KeyError for what is not there, else shoal.ps.Error.
"""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import _core
from ._core import Error, Request

__all__ = ["Checkpoint", "Client", "Error", "Request", "Server", "ServerRestart", "Table", "connect"]


class Checkpoint(NamedTuple):
    """A checkpoint that is durable: its number, and the bytes of all its files."""

    id: int
    bytes: int


class ServerRestart(NamedTuple):
    """A server that died and was started again: its index, and the checkpoint it was restored from (-1: it came back
    empty)."""

    server: int
    checkpoint: int


def _empty(keys: Any, dim: int) -> Any:
    import numpy

    shape = getattr(keys, "shape", None)
    return numpy.empty((*shape, dim) if shape is not None else (len(keys), dim), numpy.float32)


def _array(keys: Any) -> Any:
    """Lists and ranges of whole numbers become arrays; everything else stays what it is."""
    if isinstance(keys, (list, tuple, range)):
        import numpy

        array = numpy.asarray(keys)
        if array.size == 0:
            return array.astype(numpy.int64)
        if array.dtype.kind in "fO":  # as numpy reads numbers of which only some are beyond int64
            exact = numpy.asarray(keys, object)
            if all(isinstance(key, (int, numpy.integer)) and not isinstance(key, bool) and 0 <= key < 2**64
                   for key in exact.flat):
                return exact.astype(numpy.uint64)
        if array.dtype.kind not in "iu":
            raise ValueError(f"keys: got a {type(keys).__name__} that numpy reads as {array.dtype}, expected whole numbers"
                             " from 0 to 2**64 - 1")
        return array.astype(numpy.uint64 if array.dtype.kind == "u" else numpy.int64)
    return keys


class Table:
    """Rows of ``dim`` floats by key; made by :meth:`Client.table`. Thread-safe.

    ``timeout`` bounds the wait for servers; a request that is not answered in time goes on, TimeoutError tells of it.
    ``keys`` has n elements in any order and of any shape; repeated keys of a push are all applied. ``deltas`` and
    ``out`` hold n rows, as the last axis or flat. With ``wait=False`` a call returns a :class:`Request` as soon as it is
    on its way, which keeps the arrays alive; change keys and deltas and read ``out`` only after its ``wait()``.
    """

    def __init__(self, core: "_core.Table") -> None:
        self._core = core

    def __repr__(self) -> str:
        return f"<shoal.ps.Table {self.name}: {'sparse' if self.rows is None else self.rows} x {self.dim}>"

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def dim(self) -> int:
        return self._core.dim

    @property
    def rows(self) -> Optional[int]:
        """How many rows a dense table has; None for a sparse one."""
        return self._core.rows

    def pull(self, keys: Any, out: Any = None, *, wait: bool = True, timeout: float = 60.0) -> Any:
        """The rows of ``keys``, in ``out``: float32 memory for n rows, by default a new numpy array of the keys' shape
        and one axis more. A row of a sparse table without a push has its initial value."""
        keys = _array(keys)
        request = self._core._pull(keys, _empty(keys, self.dim) if out is None else out)
        return request.wait(timeout) if wait else request

    def push(self, keys: Any, deltas: Any, *, wait: bool = True, timeout: float = 60.0) -> Any:
        """Has the servers apply ``deltas`` (gradients, or what the table's optimizer makes of them) to the rows."""
        request = self._core._push(_array(keys), deltas)
        return request.wait(timeout) if wait else request

    def push_pull(self, keys: Any, deltas: Any, out: Any = None, *, wait: bool = True, timeout: float = 60.0) -> Any:
        """A push and then a pull of the same rows in one round trip. ``out`` must not overlap ``deltas``."""
        keys = _array(keys)
        request = self._core._push_pull(keys, deltas, _empty(keys, self.dim) if out is None else out)
        return request.wait(timeout) if wait else request

    def call(self, function: str, keys: Any, argument: str = "", deltas: Any = None, out: Any = None, *,
             wait: bool = True, timeout: float = 60.0) -> Any:
        """Runs a function that the servers were started with (C++: ``ServerOptions::functions``) over the rows."""
        request = self._core._call(function, _array(keys), argument, deltas, out)
        return request.wait(timeout) if wait else request


class Client:
    """A worker's connections to all servers; made by :func:`connect`. Thread-safe.

    It belongs to the process that made it: in a forked child (multiprocessing, PyTorch's DataLoader) every call raises
    :class:`Error`. A child connects itself, with ``index=-1`` as an observer, or as a worker of another index.
    """

    def __init__(self, core: "_core.Client") -> None:
        self._core = core

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.leave()
        self.close()

    def table(self, name: str, dim: int, rows: Optional[int] = None, *, optimizer: str = "add",
              uniform: Optional[Tuple[float, float]] = None, seed: int = 0, push: str = "f32", pull: str = "f32",
              timeout: float = 60.0, **parameters: Any) -> Table:
        """Makes the table on all servers, or finds it there with the same specification (ValueError if it differs).

        rows: keys are 0 to rows - 1; None: sparse, any 64-bit key, rows come into being with the first push.
        optimizer: what servers do with a pushed row: add, sgd (lr), momentum (lr, momentum), adagrad (lr, eps),
            adam (lr, beta1, beta2, eps), ftrl (lr, beta, l1, l2), combine (for changes that many
            workers make of the same rows at once: docs/ps.md), function (function, argument, state_planes). Defaults:
            lr 0.1, momentum 0.9, eps 1e-6 (adam: 1e-8), beta1 0.9, beta2 0.999, beta 1, l1 and l2 0.
        uniform: first values are drawn from this range, the same whatever the number of servers; None: zeros.
        push, pull: how rows travel: f32, bf16, int8 (push only).
        """
        rest = {"uniform": uniform, "seed": seed, "push": push, "pull": pull, "timeout": timeout}
        return Table(self._core._table(name, dim, rows, optimizer, parameters, rest))

    def flush(self, timeout: float = 60.0) -> None:
        """Waits until all requests issued so far are done."""
        self._core._flush(timeout)

    def clock(self, n: int, timeout: float = 600.0) -> None:
        """Says that this worker has finished its n-th round, and waits as its consistency demands."""
        self._core._clock(n, timeout)

    def barrier(self, name: str, timeout: float = 600.0) -> None:
        """Returns when all live workers have come to the barrier of this name."""
        self._core._barrier(name, timeout)

    def put_blob(self, name: str, data: bytes) -> None:
        """Keeps a named byte string on the servers; part of checkpoints."""
        self._core._put_blob(name, bytes(data))

    def get_blob(self, name: str) -> bytes:
        """KeyError if there is none."""
        return self._core._get_blob(name)

    def set_progress(self, data: bytes) -> None:
        """A state of this worker that goes into each checkpoint with exactly the pushes issued before it."""
        self._core._set_progress(bytes(data))

    def get_progress(self, worker: int) -> bytes:
        """The latest one known, of its present life or of the checkpoint restored from. KeyError if there is none."""
        return self._core._get_progress(worker)

    def checkpoint(self, timeout: float = 120.0) -> Checkpoint:
        """Takes a consistent checkpoint of all servers while training goes on; durable when it returns."""
        return Checkpoint(*self._core._checkpoint(timeout))

    def leave(self, timeout: float = 60.0) -> None:
        """Says good-bye: clocks and barriers no longer wait for this worker."""
        self._core._leave(timeout)

    def close(self) -> None:
        """Ends the connections, without leave(): to the servers this worker is lost, and dead after their grace."""
        self._core.close()

    @property
    def restored_checkpoint(self) -> int:
        """The checkpoint that the servers were restored from; -1: none."""
        return self._core.restored_checkpoint

    @property
    def server_restarts(self) -> List[ServerRestart]:
        """Servers that died and were started again since this client connected, in order. What was pushed to one since
        its checkpoint is lost."""
        return [ServerRestart(*restart) for restart in self._core._server_restarts]

    @property
    def counters(self) -> Dict[str, int]:
        """Rows, bytes and requests so far."""
        return self._core.counters


class Server:
    """A parameter server in this process, until close() or the end of a with block."""

    def __init__(self, *, token: str, index: int = 0, servers: int = 1, workers: int = 0, host: str = "127.0.0.1",
                 port: int = 0, threads: int = 1, checkpoint_dir: str = "", keep_checkpoints: int = 2) -> None:
        """index: of this server among `servers`. workers: how many clocks and barriers wait for before all have
        joined. port 0: any free one, see `address`. checkpoint_dir: shared by all servers; the newest whole checkpoint
        in it is restored."""
        self._core = _core.Server({
            "token": token, "index": index, "servers": servers, "workers": workers, "host": host, "port": port,
            "threads": threads, "checkpoint_dir": checkpoint_dir, "keep_checkpoints": keep_checkpoints})

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Stops at once; nothing is saved."""
        self._core.close()

    @property
    def address(self) -> str:
        """host:port, for connect()."""
        return self._core.address

    @property
    def restored_checkpoint(self) -> int:
        return self._core.restored_checkpoint

    @property
    def counters(self) -> Dict[str, int]:
        return self._core.counters


def connect(servers: Optional[Sequence[str]] = None, token: Optional[str] = None, *, index: Optional[int] = None,
            role: str = "server", consistency: str = "asp", staleness: int = 0, shared_memory: bool = True,
            ucx: bool = False, timeout: float = 30.0, reconnect_timeout: float = 30.0, window_bytes: int = 1 << 20,
            accept_data_loss: bool = False) -> Client:
    """Connects to all parameter servers of a job.

    servers: their addresses in index order; None: this process is a task of a Shoal job, and everything is taken from
        the environment that its launcher made (role: whose tasks are the servers).
    index: of this worker; -1: an observer, which takes no part in clocks, barriers and checkpoints.
    consistency: what clock() waits for: bsp, ssp (staleness) or asp.
    shared_memory: with servers of this host; ucx: over UCX instead, with servers that were started willing.
    timeout: to reach all servers at first; reconnect_timeout: for one that went away.
    accept_data_loss: after a server died and came back empty (no checkpoint, one copy), every call fails with
        shoal.ps.Error; True: calls go on, and the program makes good for the rows (see Client.server_restarts).
    """
    if isinstance(servers, (str, bytes)):
        raise TypeError(f"servers: got {servers!r}, expected a list of addresses, such as [{servers!r}]")
    return Client(_core.connect({
        "servers": None if servers is None else list(servers), "token": token, "index": index, "role": role,
        "consistency": consistency, "staleness": staleness, "shared_memory": shared_memory, "ucx": ucx,
        "timeout": timeout, "reconnect_timeout": reconnect_timeout, "window_bytes": window_bytes,
        "accept_data_loss": accept_data_loss}))
