"""Requests to a server over http.client: TLS with a pinned certificate, time-outs, bounded replies and repetition.

Connections are kept and used again. A request that may be repeated is repeated while the server cannot be reached or
answers 502, 503 or 429. Of several servers of one store the one that leads is asked: after a failure the one that the
answer names (Shoal-Leader), if the user has named it too, else the next. Proxies of the environment are not used, and redirects are not followed, because a token would
go with them.
"""
from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Dict, List, Mapping, Optional

from ._errors import ApiError, ServerUnavailableError, ShoalError, error_of_reply
from ._login import Login

PREFIX = "/api/v1"
_MAX_REPLY = 64 << 20
_IDLE = 8  # connections that are kept
_BUSY = (429, 502, 503)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 3.0


@dataclass
class Request:
    """`target` is below /api/v1. `repeatable`: a second one has no effect beyond the first."""

    method: str
    target: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Optional[bytes] = None
    headers: Dict[str, str] = field(default_factory=dict)
    repeatable: bool = True


@dataclass
class Reply:
    status: int
    headers: Message
    body: bytes

    def json(self) -> Any:
        return parse_json(self.body)


def parse_json(data: bytes) -> Any:
    try:
        return json.loads(data) if data else {}
    except (ValueError, RecursionError):
        raise ShoalError("the server's answer is no JSON") from None


def query_text(query: Mapping[str, Any]) -> str:
    """"?a=b&c=d" of the values that are not None."""
    pairs = [(k, str(v).lower() if isinstance(v, bool) else str(v)) for k, v in query.items() if v is not None and v != ""]
    return "?" + urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote) if pairs else ""


def quoted(part: str) -> str:
    """A part of a path; `..` would be another path."""
    if part in ("", ".", ".."):
        raise ValueError(f"got {part!r}, expected the name of a job or task")
    return urllib.parse.quote(part, safe="")


class Backoff:
    """Pauses that grow, until a time has passed since the last sign of life."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.revive()

    def revive(self) -> None:
        self._since = time.monotonic()
        self._pause = _FIRST_PAUSE

    def next(self, most: float = float("inf")) -> Optional[float]:
        """Seconds to wait before the next attempt; None when patience is over."""
        left = self._patience - (time.monotonic() - self._since)
        if left <= 0:
            return None
        pause = min(self._pause * random.uniform(0.75, 1.25), max(left, 0.01), max(most, 0.0))
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return pause


class _PinnedConnection(http.client.HTTPSConnection):
    """Checks the certificate's fingerprint before anything is sent."""

    fingerprint = ""

    def connect(self) -> None:
        super().connect()
        certificate = self.sock.getpeercert(binary_form=True) or b""
        if not hmac.compare_digest(hashlib.sha256(certificate).hexdigest(), self.fingerprint):
            self.close()
            raise ssl.SSLCertVerificationError("its certificate has another fingerprint than the one that was pinned; if the "
                                               "certificate was replaced, `shoal login` again with the new fingerprint")


class OpenReply:
    """A body that is read piece by piece. `cancel` may be called on another thread; the rest on one."""

    def __init__(self, transport: Transport, connection: http.client.HTTPConnection, sock: socket.socket,
                 response: http.client.HTTPResponse) -> None:
        self._transport, self._connection, self._sock, self._response = transport, connection, sock, response
        self.headers: Message = response.headers

    def read(self, seconds: Optional[float] = None) -> bytes:
        """The next bytes, empty at the end. BROKEN after a silence, here of `seconds` if they are given."""
        try:
            if seconds is not None:
                self._sock.settimeout(max(seconds, 0.001))
            return self._response.read1(1 << 16)
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:  # the last two: after `cancel`
            raise _NotAnswered(self._transport.unavailable(error)) from None

    def cancel(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except (OSError, ValueError):
            pass

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class _Server:
    """One of the servers."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.url = url
        self.secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.secure else 80)
        self.path = parts.path.rstrip("/") + PREFIX


class Transport:
    """Thread-safe; safe after a fork. `timeout`: seconds that one request may take; `retry`: for how long a repeatable
    one is repeated."""

    def __init__(self, login: Login, timeout: float, retry: float) -> None:
        self.login, self.timeout, self.retry = login, timeout, retry
        self._servers = [_Server(url) for url in login.url.split(",")]
        self._current = 0  # of _servers: the one that leads, as far as known
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []
        self._pid = os.getpid()
        self._context: Optional[ssl.SSLContext] = None
        if any(server.secure for server in self._servers):
            self._context = ssl.create_default_context()
            if login.fingerprint:
                self._context.check_hostname = False
                self._context.verify_mode = ssl.CERT_NONE

    def __repr__(self) -> str:
        return f"<{self.login.url}>"

    @property
    def _server(self) -> _Server:
        return self._servers[self._current]

    def _go_on(self, server: _Server, leader: Optional[str] = None) -> bool:
        """After a failure of `server`: asks another one from now on. Whether it is the one that is said to lead."""
        with self._lock:
            if len(self._servers) == 1 or self._server is not server:
                return False
            named = next((i for i, one in enumerate(self._servers) if one.url == leader and one is not server), None)
            self._current = (self._current + 1) % len(self._servers) if named is None else named
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        return named is not None

    def call(self, request: Request) -> Reply:
        """A reply of status 2xx; others are ApiError. ServerUnavailableError if the server cannot be reached."""
        backoff = Backoff(self.retry)
        while True:
            failure: ShoalError
            server = self._server
            try:
                reply = self._exchange(server, request)
                if 200 <= reply.status < 300:
                    return reply
                failure = self._error(reply)
                again = reply.status in _BUSY
                wait = _seconds(reply.headers.get("Retry-After"))
                if reply.status == 503 and self._go_on(server, reply.headers.get("Shoal-Leader")):
                    wait = 0.0
            except _NotSent as error:
                failure, again, wait = error.sentence, True, 0.0
                self._go_on(server)
            except _NotAnswered as error:
                failure, again, wait = error.sentence, request.repeatable, 0.0
                self._go_on(server)
            pause = backoff.next() if again else None
            if pause is None:
                raise failure
            time.sleep(max(pause, min(wait, 5.0)))

    def get(self, target: str, query: Optional[Mapping[str, Any]] = None) -> Any:
        return self.call(Request("GET", target, query or {})).json()

    def post(self, target: str, body: Mapping[str, Any], repeatable: bool, headers: Optional[Dict[str, str]] = None) -> Any:
        data = json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self.call(Request("POST", target, body=data, headers=sent, repeatable=repeatable)).json()

    def open(self, request: Request, silence: float) -> OpenReply:
        """A reply whose body the caller reads and closes; one attempt.

        silence: seconds after which a connection without bytes counts as dead.
        """
        server = self._server
        connection = self._connect(server, min(self.timeout, silence))
        try:
            sock = self._send(server, connection, request)
            response = self._begin(connection)
            if response.status == 503:
                self._go_on(server, response.headers.get("Shoal-Leader"))
            if response.status != 200:
                raise self._error(Reply(response.status, response.headers, self._body(response, time.monotonic() + self.timeout)))
            sock.settimeout(silence)
            return OpenReply(self, connection, sock, response)
        except BaseException as error:
            connection.close()
            if isinstance(error, BROKEN):
                self._go_on(server)
            raise

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _exchange(self, server: _Server, request: Request) -> Reply:
        connection = self._take(server) if request.repeatable else None
        if connection is not None:
            try:
                return self._round(server, connection, request)
            except (_NotSent, _NotAnswered):
                pass  # the server may have closed it meanwhile: once more on a new one
        return self._round(server, self._connect(server, self.timeout), request)

    def _round(self, server: _Server, connection: http.client.HTTPConnection, request: Request) -> Reply:
        done = False
        try:
            self._send(server, connection, request)
            response = self._begin(connection)
            body = self._body(response, time.monotonic() + self.timeout)
            done = not response.will_close
            response.close()  # else the connection takes no further request
            return Reply(response.status, response.headers, body)
        finally:
            if done:
                self._keep(server, connection)
            else:
                connection.close()

    def _connect(self, server: _Server, timeout: float) -> http.client.HTTPConnection:
        if not server.secure:
            return http.client.HTTPConnection(server.host, server.port, timeout=timeout)
        if not self.login.fingerprint:
            return http.client.HTTPSConnection(server.host, server.port, timeout=timeout, context=self._context)
        pinned = _PinnedConnection(server.host, server.port, timeout=timeout, context=self._context)
        pinned.fingerprint = self.login.fingerprint
        return pinned

    def _send(self, server: _Server, connection: http.client.HTTPConnection, request: Request) -> socket.socket:
        headers = {"Authorization": f"Bearer {self.login.token}", "Accept": "application/json", "User-Agent": "shoal-python",
                   **request.headers}
        try:
            if connection.sock is None:
                connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise ShoalError(f"the server {server.url} is not trusted: {error.verify_message if error.args[1:] else error}"
                             ) from None
        except OSError as error:
            raise _NotSent(self.unavailable(error)) from None
        try:
            connection.request(request.method, server.path + request.target + query_text(request.query), request.body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise _NotAnswered(self.unavailable(error)) from None
        sock: Any = connection.sock  # gone from the connection when the server closes after its answer
        assert isinstance(sock, socket.socket)
        return sock

    def _begin(self, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        try:
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise _NotAnswered(self.unavailable(error)) from None

    def _body(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        parts: List[bytes] = []
        size = 0
        try:
            while True:
                part = response.read1(1 << 20)
                if not part:
                    break
                parts.append(part)
                size += len(part)
                if size > _MAX_REPLY:
                    raise ShoalError(f"the server's answer is larger than {_MAX_REPLY >> 20} MiB")
                if time.monotonic() > deadline:
                    raise socket.timeout(f"no whole answer within {self.timeout:g} s")
        except (OSError, http.client.HTTPException) as error:
            raise _NotAnswered(self.unavailable(error)) from None
        expected = response.headers.get("Content-Length")
        if expected is not None and expected.isdigit() and size < int(expected) and response.status != 204:
            raise _NotAnswered(self.unavailable(ConnectionError("the connection broke within the answer")))
        return b"".join(parts)

    def _error(self, reply: Reply) -> ApiError:
        try:
            document = json.loads(reply.body)
        except (ValueError, RecursionError):
            document = None
        return error_of_reply(reply.status, document, self._server.url)

    def unavailable(self, error: BaseException) -> ServerUnavailableError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, http.client.IncompleteRead):
            reason = "the connection broke"
        return ServerUnavailableError(f"the server {self._server.url} cannot be reached: {reason}; does it run, and is the URL right?")

    def _take(self, server: _Server) -> Optional[http.client.HTTPConnection]:
        with self._lock:
            if self._server is not server:
                return None
            if self._pid != os.getpid():  # those of the parent process
                self._idle, self._pid = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def _keep(self, server: _Server, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if self._server is server and self._pid == os.getpid() and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()


class _Failure(Exception):
    def __init__(self, sentence: ServerUnavailableError) -> None:
        super().__init__(str(sentence))
        self.sentence = sentence


class _NotSent(_Failure):
    """No connection: the server has seen nothing of the request."""


class _NotAnswered(_Failure):
    """The server may have seen the request."""


BROKEN = (_NotSent, _NotAnswered)


def _seconds(text: Optional[str]) -> float:
    return float(text) if text is not None and text.isdigit() and len(text) < 6 else 0.0
