"""The data of a job, for programs of any framework: each task reads its exact part.

::

    import shoal.data

    for batch in shoal.data.read("train", batch=256, resume="position.json"):
        train(batch["age"], batch["city"])        # numpy arrays; texts are arrays of objects

The job's file names the data::

    data: {train: {source: "s3://bucket/people-*.parquet"}}
    roles: {worker: {replicas: 4, command: [python3, train.py]}}

A child process, `shoal data read`, opens the sources and sends columns; this module needs numpy alone. docs/data.md is the guide.
"""
from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ._errors import ShoalError

__all__ = ["Batch", "DataError", "Ragged", "Reader", "local", "read", "tf_dataset", "torch_dataset"]

_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
_MOST_HEAD = 256 << 20
_MISSING = 2


class DataError(ShoalError):
    """The data cannot be read; the message names the file and what is wrong."""


class Ragged:
    """A list of values for each row: `values` of all rows, and `offsets`, one more than rows. `ragged[i]` is row i."""

    def __init__(self, values: Any, offsets: Any) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Any:
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self.values[self.offsets[i]:self.offsets[i + 1]]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def stacked(self) -> Any:
        """An array of rows × values; ValueError if the rows have different lengths."""
        lengths = np.diff(self.offsets)
        if len(lengths) and (lengths != lengths[0]).any():
            raise ValueError("the rows have lists of different lengths")
        return self.values.reshape(len(self), -1)


class Batch(Dict[str, Any]):
    """Columns by name, of `rows` rows: int64 (float64 with NaN where some have fractions or are missing), bool, arrays of objects with
    str or bytes (None: missing), or Ragged. `position` is the place behind it."""

    rows: int
    position: str

    def dicts(self) -> Iterator[Dict[str, Any]]:
        """The rows one by one."""
        names = list(self)
        columns = [self[name] for name in names]
        for i in range(self.rows):
            yield {name: column[i] for name, column in zip(names, columns)}

    def pandas(self) -> Any:
        """A pandas.DataFrame."""
        import pandas  # type: ignore  # pylint: disable=import-outside-toplevel
        return pandas.DataFrame({name: list(column) if isinstance(column, Ragged) else column for name, column in self.items()})


def _program() -> str:
    program = os.environ.get("SHOAL_PROGRAM") or shutil.which("shoal")
    if not program:
        raise DataError("the command shoal is not found: within a job SHOAL_PROGRAM names it; else it must be on PATH")
    return program


def _arguments(name: Any, part: Optional[Tuple[int, int]], within: Optional[Tuple[int, int]], format: Optional[str],
               max_bad: float) -> List[str]:
    words = [name] if isinstance(name, str) else list(name)
    if part is not None:
        words += ["--part", f"{part[0]}/{part[1]}"]
    if within is not None:
        words += ["--within", f"{within[0]}/{within[1]}"]
    if format is not None:
        words += ["--format", format]
    if max_bad:
        words += ["--max-bad", str(100 * max_bad)]
    return words


class _Frames:
    """The frames of a child process."""

    def __init__(self, words: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()
        self._child = subprocess.Popen([_program(), "data", "read", "--as", "batches", *words], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=self._errors)
        assert self._child.stdout is not None
        self._stream = self._child.stdout
        try:
            import fcntl  # pylint: disable=import-outside-toplevel
            fcntl.fcntl(self._stream.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            pass

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            self._fail()
        return data

    def _fail(self) -> None:
        code = self._child.wait()
        self._errors.seek(0)
        text = self._errors.read().decode("utf-8", "replace").strip()
        text = "\n".join(line[7:] if line.startswith("shoal: ") else line for line in text.splitlines())
        raise DataError(text or f"`shoal data read` has ended with code {code}")

    def next(self) -> Tuple[Dict[str, Any], List[List[bytes]]]:
        """Head and buffers of the next frame."""
        size = struct.unpack("<I", self._read(4))[0]
        if size > _MOST_HEAD:
            raise DataError("the reader sent a frame that is too long")
        head = json.loads(self._read(size))
        return head, [[self._read(n) for n in column["sizes"]] for column in head["columns"]]

    def tell_notes(self) -> None:
        """Malformed records that were left out, on standard error, at the end."""
        self._child.wait()
        self._errors.seek(0)
        sys.stderr.write(self._errors.read().decode("utf-8", "replace"))

    def close(self) -> None:
        self._stream.close()
        if self._child.poll() is None:
            self._child.terminate()
        self._child.wait()
        self._errors.close()


def _texts(flags: bytes, ends: bytes, text: bytes, as_bytes: bool) -> Any:
    stops = np.frombuffer(ends, np.uint64).tolist()
    values = np.empty(len(stops), object)
    missing = np.frombuffer(flags, np.uint8) == _MISSING
    begin = 0
    for i, stop in enumerate(stops):
        piece = text[begin:stop]
        values[i] = piece if as_bytes else piece.decode("utf-8", "surrogateescape")
        begin = stop
    values[missing] = None
    return values


def _column(column: Dict[str, Any], buffers: List[bytes]) -> Any:
    kind = column["type"]
    if kind in ("number", "numbers"):
        values = np.frombuffer(buffers[0], np.int64 if column["stored"] == "int64" else np.float64)
        if kind == "number":
            return values
        return Ragged(values, _offsets(buffers[1]))
    if kind == "bool":
        flags = np.frombuffer(buffers[0], np.uint8)
        if (flags != _MISSING).all():
            return flags.astype(bool)
        values = flags.astype(object)
        values[:] = [None if flag == _MISSING else bool(flag) for flag in flags]
        return values
    values = _texts(buffers[0], buffers[1], buffers[2], column["bytes"])
    return Ragged(values, _offsets(buffers[3])) if kind == "texts" else values


def _offsets(ends: bytes) -> Any:
    return np.concatenate([np.zeros(1, np.int64), np.frombuffer(ends, np.uint64).astype(np.int64)])


class Reader:
    """An iterator of batches. Used in a `with`, or closed, it ends its child process."""

    def __init__(self, words: Sequence[str], position: Optional[str], resume: Optional[str]) -> None:
        self._resume = resume
        if position is None and resume is not None and os.path.exists(resume):
            with open(resume, encoding="utf-8") as f:
                position = f.read()
        self._frames: Optional[_Frames] = _Frames([*words, *(["--from", position] if position else [])])
        self._given: Optional[str] = position
        self._kept: Optional[str] = position
        self._done = False

    @property
    def position(self) -> Optional[str]:
        """The place behind the batch that was given last, for `read(position=…)`; None before the first."""
        return self._given

    def commit(self) -> None:
        """Writes the position to the file `resume`: what was given so far is not given again after a restart."""
        if self._resume is None:
            raise ValueError("commit needs read(…, resume=PATH)")
        if self._given is None or self._given == self._kept:
            return
        aside = f"{self._resume}.{os.getpid()}.tmp"
        with open(aside, "w", encoding="utf-8") as f:
            f.write(self._given)
            f.flush()
            os.fsync(f.fileno())
        os.replace(aside, self._resume)
        self._kept = self._given

    def __iter__(self) -> "Reader":
        return self

    def __next__(self) -> Batch:
        if self._resume is not None:
            self.commit()  # who asks for the next batch is done with the last
        if self._done or self._frames is None:
            raise StopIteration
        head, buffers = self._frames.next()
        self._given = head["position"]
        if head["rows"] == 0:
            self._done = True
            self._frames.tell_notes()
            self.close()
            raise StopIteration
        batch = Batch()
        for column, parts in zip(head["columns"], buffers):
            batch[column["name"]] = _column(column, parts)
        batch.rows = head["rows"]
        batch.position = head["position"]
        return batch

    def close(self) -> None:
        if self._frames is not None:
            self._frames.close()
            self._frames = None

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_frames", None) is not None:
            self.close()


def read(name: Any, *, batch: int = 1024, columns: Optional[Sequence[str]] = None, texts: Sequence[str] = (),
         part: Optional[Tuple[int, int]] = None, within: Optional[Tuple[int, int]] = None, format: Optional[str] = None,
         max_bad: float = 0.0, position: Optional[str] = None, resume: Optional[str] = None, shuffle: Optional[int] = None,
         shuffle_window: Optional[int] = None) -> Reader:
    """The records of this task's part of the data set `name`, once, as batches of columns.

    `name` may also be a path, a URI, or a list of them; then `part` is (0, 1), all of it.

    :param batch: rows of a batch; the last one, and ones with long texts, have fewer.
    :param columns: only these; of Parquet the others are not read.
    :param texts: columns of texts, even if they read as numbers.
    :param part: (i, n): part i of n in place of this task's.
    :param within: (i, n): part i of n of the part, such as of a process that loads.
    :param max_bad: the share of malformed records that are left out; with 0 the first one is an error.
    :param position: `reader.position` of an earlier reader of the same data and part: goes on at the exact record.
    :param resume: a file for the position. It is written when the next batch is asked for, or by `commit`, and read at the start.
    :param shuffle: a seed, such as the number of the epoch: the records in its pseudo-random order, the same on every machine.
    :param shuffle_window: records that are in memory to be drawn from [100000, at most 64 MiB of them].
    :raises DataError: with a sentence.
    """
    words = _arguments(name, part, within, format, max_bad) + ["--batch", str(batch)]
    if shuffle is not None:
        words += ["--shuffle", str(shuffle)]
    if shuffle_window is not None:
        words += ["--shuffle-window", str(shuffle_window)]
    for option, names in (("--columns", columns), ("--texts", texts)):
        if names:
            words += [option, ",".join(names)]
    return Reader(words, position, resume)


def local(name: Any, directory: Optional[str] = None, *, part: Optional[Tuple[int, int]] = None,
          within: Optional[Tuple[int, int]] = None, format: Optional[str] = None, max_bad: float = 0.0) -> str:
    """This task's part of the data set as a file, in its own format (Parquet as JSON lines); returns its path.

    :param directory: where; [SHOAL_SCRATCH, which ends with the task]. A part that was written there before is not read again.
    """
    folder = directory or os.environ.get("SHOAL_SCRATCH") or tempfile.mkdtemp()
    words = _arguments(name, part, within, format, max_bad)
    done = subprocess.run([_program(), "data", "read", "--into", folder, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").strip()
        raise DataError("\n".join(line[7:] if line.startswith("shoal: ") else line for line in text.splitlines()))
    return os.fsdecode(done.stdout.rstrip(b"\n"))


def torch_dataset(name: Any, **options: Any) -> Any:
    """A torch.utils.data.IterableDataset of batches, for a DataLoader with batch_size=None; options as of read. Each of the DataLoader's
    workers reads a part of this task's part. Numbers are tensors."""
    import torch  # type: ignore  # pylint: disable=import-outside-toplevel
    from torch.utils.data import IterableDataset, get_worker_info  # type: ignore  # pylint: disable=import-outside-toplevel

    class Dataset(IterableDataset):  # type: ignore
        def __iter__(self) -> Iterator[Dict[str, Any]]:
            info = get_worker_info()
            own = dict(options)
            if info is not None and info.num_workers > 1:
                if "within" in own:
                    raise ValueError("within is set by the DataLoader's workers")
                own["within"] = (info.id, info.num_workers)
                if own.get("resume") is not None:
                    own["resume"] = f"{own['resume']}.{info.id}"
            with read(name, **own) as reader:
                for batch in reader:
                    yield {key: torch.from_numpy(column.copy()) if isinstance(column, np.ndarray) and column.dtype != object else column
                           for key, column in batch.items()}

    return Dataset()


def tf_dataset(name: Any, **options: Any) -> Any:
    """A tf.data.Dataset of batches: dicts of tensors. Numbers are float32, texts strings ("" where missing), lists ragged tensors; options
    as of read."""
    import tensorflow as tf  # type: ignore  # pylint: disable=import-outside-toplevel

    def tensor(column: Any) -> Any:
        if isinstance(column, Ragged):
            return tf.RaggedTensor.from_row_splits(tensor(column.values), column.offsets)
        if column.dtype == object:
            return tf.constant(["" if value is None else value for value in column], tf.string)
        return tf.constant(column, tf.bool if column.dtype == bool else tf.float32)

    def batches() -> Iterator[Dict[str, Any]]:
        with read(name, **options) as reader:
            for batch in reader:
                yield {key: tensor(column) for key, column in batch.items()}

    probe = {key: value for key, value in options.items() if key not in ("position", "resume")}
    with read(name, **{**probe, "batch": 1, "part": (0, 1), "within": None}) as reader:
        first = next(reader, None)
    if first is None:
        raise DataError("the data has no record")

    def spec(column: Any) -> Any:
        if isinstance(column, Ragged):
            return tf.RaggedTensorSpec([None, None], tf.string if column.values.dtype == object else tf.float32)
        if column.dtype == object:
            return tf.TensorSpec([None], tf.string)
        return tf.TensorSpec([None], tf.bool if column.dtype == bool else tf.float32)

    return tf.data.Dataset.from_generator(batches, output_signature={key: spec(column) for key, column in first.items()})
