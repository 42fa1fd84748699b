"""Server-sent events of the server, read again from the last position where a connection broke."""
from __future__ import annotations

import base64
import binascii
import json
import logging
import threading
import time
from typing import Any, Callable, Dict, Generic, Iterator, List, Mapping, Optional, Tuple, TypeVar

from ._errors import ApiError, ServerUnavailableError, ShoalError
from ._http import BROKEN, Backoff, OpenReply, Request, Transport, parse_json, query_text
from ._records import LogLine

_LOG = logging.getLogger("shoal")
_MAX_QUERY = 4096  # servers and proxies limit the head of a request
_SILENCE = 45.0  # the server writes a comment every 15 s
_MAX_EVENT = 16 << 20
_BUSY = (429, 502, 503)

T = TypeVar("T")
LogKey = Tuple[str, int, int]  # role, index, attempt


class EventReader:
    """Bytes of a stream into events: (type, data)."""

    def __init__(self) -> None:
        self._rest = b""
        self._type, self._size = "", 0
        self._data: List[bytes] = []

    def feed(self, piece: bytes) -> List[Tuple[str, bytes]]:
        events: List[Tuple[str, bytes]] = []
        lines = (self._rest + piece).split(b"\n") if b"\n" in piece else [self._rest + piece]
        self._rest = lines.pop()
        for line in lines:
            line = line[:-1] if line.endswith(b"\r") else line
            if not line:
                if self._data:
                    events.append((self._type or "message", b"\n".join(self._data)))
                self._type, self._data, self._size = "", [], 0
                continue
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if name == b"event":
                self._type = value.decode("utf-8", "replace")
            elif name == b"data":
                self._data.append(value)
                self._size += len(value)
        if len(self._rest) + self._size > _MAX_EVENT:
            raise ShoalError(f"the server sent an event of more than {_MAX_EVENT >> 20} MiB")
        return events


class Stream:
    """Iterates over the events of an address: (type, data). `close` ends it, from any thread.

    query: makes the parameters of each connection, from the position that its user has reached.
    seconds: TimeoutError after this time; None: never. patience: seconds that a lost server is tried again.
    """

    def __init__(self, transport: Transport, target: str, query: Callable[[], Mapping[str, Any]], patience: float,
                 seconds: Optional[float] = None) -> None:
        self._transport, self._target, self._query, self._patience = transport, target, query, patience
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._open: Optional[OpenReply] = None

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            if self._open is not None:
                self._open.cancel()

    def __iter__(self) -> Iterator[Tuple[str, Dict[str, Any]]]:
        backoff = Backoff(self._patience)
        lost = False
        while not self._closed.is_set():
            failure: ShoalError = ServerUnavailableError(f"the server {self._transport.login.url} ended the stream early")
            try:
                for event in self._once():
                    if lost:
                        _LOG.warning("the server %s answers again", self._transport.login.url)
                    lost = False
                    if event is not None:
                        yield event
                    backoff.revive()
                    if self._closed.is_set():
                        return
            except BROKEN as error:
                failure = error.sentence
            except ApiError as error:
                if error.status not in _BUSY:
                    raise
                failure = error
            if self._closed.is_set():
                return
            pause = backoff.next(self._left())
            if pause is None:
                raise failure
            if not lost:
                _LOG.warning("%s; trying again", failure)
            lost = True
            self._closed.wait(pause)
            self._left()

    def _left(self) -> float:
        if self._deadline is None:
            return float("inf")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._target}: not yet within the given time; the job goes on")
        return left

    def _request(self) -> Request:
        """Positions of many logs are too long for an address, and go into a body."""
        query = self._query()
        headers = {"Accept": "text/event-stream"}
        if len(query_text(query)) <= _MAX_QUERY:
            return Request("GET", self._target, query, headers=headers)
        body = json.dumps({name: value for name, value in query.items() if value not in (None, "")}).encode()
        return Request("POST", self._target, body=body, headers={**headers, "Content-Type": "application/json"})

    def _once(self) -> Iterator[Optional[Tuple[str, Dict[str, Any]]]]:
        """The events of one connection; None for bytes without a whole event."""
        silence = min(_SILENCE, self._left())
        opened = self._transport.open(self._request(), silence)
        try:
            with self._lock:
                self._open = opened
            reader = EventReader()
            while not self._closed.is_set():
                try:
                    piece = opened.read(min(_SILENCE, self._left()))
                except BROKEN:
                    self._left()  # a deadline, not a broken connection
                    raise
                if not piece:
                    return
                yield None
                for kind, data in reader.feed(piece):
                    value = parse_json(data)
                    if isinstance(value, dict):
                        yield kind, value
        finally:
            with self._lock:
                self._open = None
            opened.close()


class Followed(Generic[T]):
    """An iterator over what a stream carries; `close` ends it from any thread, also while it waits."""

    def __init__(self, stream: Stream, items: Iterator[T]) -> None:
        self._stream, self._items = stream, items

    def __iter__(self) -> Iterator[T]:
        return self._items

    def close(self) -> None:
        self._stream.close()


class LogPosition:
    """Where each log has been read to, and the lines that are not whole yet."""

    def __init__(self) -> None:
        self.offsets: Dict[LogKey, int] = {}
        self._begun: Dict[LogKey, Tuple[int, bytes]] = {}  # offset and bytes of the line that is not whole

    def text(self) -> str:
        return ",".join(f"{role}-{index}.{attempt}:{offset}" for (role, index, attempt), offset in self.offsets.items())

    def take(self, data: Mapping[str, Any]) -> Iterator[LogLine]:
        """The lines that become whole by a `log` event; bytes that came before are skipped."""
        role, index, attempt, offset = (data.get(n) for n in ("role", "index", "attempt", "offset"))
        if not isinstance(role, str) or not all(isinstance(n, int) and n >= 0 for n in (index, attempt, offset)):
            raise ShoalError("the server sent a log event without task, attempt and offset")
        assert isinstance(index, int) and isinstance(attempt, int) and isinstance(offset, int)
        yield from self.add((role, index, attempt), offset, _bytes_of(data))

    def add(self, key: LogKey, offset: int, piece: bytes) -> Iterator[LogLine]:
        known = self.offsets.get(key, offset)
        if offset < known:
            piece, offset = piece[known - offset:], known
        self.offsets[key] = max(known, offset + len(piece))
        start, begun = self._begun.pop(key, (offset, b""))
        lines = (begun + piece).split(b"\n")
        rest = lines.pop()
        if rest:
            self._begun[key] = (start + sum(len(line) + 1 for line in lines), rest)
        for line in lines:
            yield _line(key, start, line)
            start += len(line) + 1

    def rest(self) -> Iterator[LogLine]:
        """Last lines without a line feed."""
        begun, self._begun = self._begun, {}
        for key, (start, line) in begun.items():
            yield _line(key, start, line)


def _line(key: LogKey, offset: int, line: bytes) -> LogLine:
    return LogLine(f"{key[0]}-{key[1]}", key[2], offset, line.decode("utf-8", "replace"))


def _bytes_of(data: Mapping[str, Any]) -> bytes:
    coded = data.get("base64")
    if isinstance(coded, str):
        try:
            return base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError):
            raise ShoalError("the server sent a log event whose base64 is damaged") from None
    text = data.get("text")
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else b""
