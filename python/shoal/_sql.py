"""`shoal.sql` and `shoal.SqlSession`: SQL at a server, or without one by the command `shoal`.

A session keeps tables and variables from one call to the next. At a server it is one of REST (docs/rest.md); without one it is a child
process, `shoal sql-session`, with lines of JSON in both directions (docs/formats/sql-session.md).
"""
from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ._errors import ApiError, ConfigurationError, ServerUnavailableError, ShoalError, SqlError
from ._http import Request, Transport, quoted
from ._login import choose_login
from ._result import SqlResult, result_of
from ._stream import Stream
from ._submit import find_command

Event = Mapping[str, Any]
OnEvent = Callable[[Event], None]

_ROWS = 1000
_PATIENCE = 60.0
_MAX_LINE = 1 << 30
_MAX_PUT = 900_000  # bytes: a text of a statement has at most 1 MiB
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class _Server:
    """A session at a server, made when it is first used."""

    def __init__(self, transport: Transport, team: Optional[str], patience: float) -> None:
        self._transport, self._team, self._patience = transport, team, patience
        self._path = ""
        self._lock = threading.Lock()

    def _target(self, rest: str = "") -> str:
        with self._lock:
            if not self._path:
                team = self._team or _usual_team(self._transport)
                made = self._transport.post(f"/teams/{quoted(team)}/sql", {}, False)
                self._path = f"/teams/{quoted(team)}/sql/{quoted(str(made.get('id', '')))}"
            return self._path + rest

    def run(self, text: str, rows: int) -> Iterator[Event]:
        began = self._transport.post(self._target("/statements"), {"text": text, "rows": rows}, False)
        number, at = began.get("statement"), [str(began.get("after", ""))]
        stream = Stream(self._transport, self._target("/events"), lambda: {"after": at[0]}, self._patience)
        try:
            for kind, event in stream:
                at[0] = str(event.get("seq", at[0]))
                if kind in ("ended", "lost") or event.get("id") == number:
                    yield event
        finally:
            stream.close()

    def cancel(self) -> None:
        if self._path:
            self._transport.post(self._target("/cancel"), {}, True)

    def ask(self, op: str, text: str, cursor: int) -> Event:
        answer = self._transport.post(self._target("/" + op), {"text": text, "cursor": cursor}, True)
        return answer if isinstance(answer, dict) else {}

    def close(self) -> None:
        with self._lock:
            path, self._path = self._path, ""
        if path:
            try:
                self._transport.call(Request("DELETE", path, repeatable=True))
            except (ApiError, ServerUnavailableError):
                pass  # it has ended, or will when it is idle


def _usual_team(transport: Transport) -> str:
    teams = transport.get("/me").get("teams")
    names = sorted(teams) if isinstance(teams, dict) else []
    if len(names) > 1 and "default" not in names:
        raise ConfigurationError(f"the user is in the teams {', '.join(names)}; name one with team=…")
    return str(names[0]) if len(names) == 1 else "default"


class _Process:
    """A session of this machine."""

    def __init__(self, engine: Optional[str]) -> None:
        self._command = [find_command("which runs SQL without a server"), "sql-session", *(["--engine", engine] if engine else [])]
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._number = 0
        self._write = threading.Lock()

    def _send(self, line: Mapping[str, Any]) -> None:
        if self._child is None or self._child.poll() is not None:
            # Not in the terminal's group: Ctrl-C is a request to stop the statement.
            self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                                           env={**os.environ, "SHOAL_SERVER": "none"})
        assert self._child.stdin is not None
        try:
            with self._write:
                self._child.stdin.write(json.dumps(line).encode() + b"\n")
                self._child.stdin.flush()
        except OSError:
            raise ShoalError("the session's process has ended") from None

    def _lines(self) -> Iterator[Event]:
        assert self._child is not None and self._child.stdout is not None
        while True:
            line = self._child.stdout.readline(_MAX_LINE)
            if not line:
                raise ShoalError(f"the session's process has ended with the exit code {self._child.wait()}; its tables are lost")
            try:
                event = json.loads(line)
            except ValueError:
                raise ShoalError("the session's process answers with something else than JSON") from None
            if isinstance(event, dict):
                yield event

    def run(self, text: str, rows: int) -> Iterator[Event]:
        self._number += 1
        self._send({"op": "run", "id": self._number, "text": text, "name": f"statement {self._number}", "rows": rows})
        for event in self._lines():
            if event.get("id", self._number) == self._number:  # those of jobs have none
                yield event

    def cancel(self) -> None:
        if self._child is not None and self._child.poll() is None:
            self._send({"op": "stop"})

    def ask(self, op: str, text: str, cursor: int) -> Event:
        self._number += 1
        self._send({"op": op, "id": self._number, "text": text, "cursor": cursor})
        return next(event for event in self._lines() if event.get("id") == self._number)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # it has ended already
        child.wait()


class _Reader:
    """Events that a thread reads, so that an interrupt of this one loses none."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._read: queue.Queue[Tuple[Optional[Event], Optional[BaseException]]] = queue.Queue()
        threading.Thread(target=self._run, name="shoal-sql", daemon=True).start()

    def _run(self) -> None:
        try:
            for event in self._events:
                self._read.put((event, None))
                if event.get("event") in ("finished", "ended"):
                    return
            self._read.put((None, ShoalError("the session ended before its statements")))
        except BaseException as error:  # pylint: disable=broad-except
            self._read.put((None, error))

    def next(self) -> Event:
        event, error = self._read.get()
        if error is not None or event is None:
            raise error or ShoalError("the session ended before its statements")
        return event


class _Taken:
    """What the events of statements add up to."""

    def __init__(self, on_event: Optional[OnEvent]) -> None:
        self._on_event = on_event
        self._last: Optional[Event] = None
        self._notes: List[str] = []
        self._jobs: List[str] = []
        self._end: Event = {}

    def take(self, event: Event) -> bool:
        """Whether it was the last one."""
        if self._on_event is not None:
            self._on_event(event)
        kind = event.get("event")
        if kind == "rows":
            self._last = event
        elif kind == "note" and "text" in event:
            self._notes.append(str(event["text"]))
        elif kind == "submitted":
            self._jobs.append(str(event.get("job", "")))
        elif kind == "ended":
            raise ShoalError(f"the session has ended: {event.get('reason', '')}")
        elif kind == "finished":
            self._end = event
            return True
        return False

    def result(self) -> SqlResult:
        if self._end.get("ok") is not True:
            raise SqlError(str(self._end.get("error", "")), str(self._end.get("code", "")))
        result = result_of(self._last)
        result.notes, result.jobs = self._notes, self._jobs
        return result


def _json_lines(table: Any) -> str:
    """A table as JSON lines; Python's own types, and those that know `to_dicts`, `to_pylist` or `to_json`."""
    if hasattr(table, "to_json") and hasattr(table, "columns"):  # pandas
        text = str(table.to_json(orient="records", lines=True, date_format="iso"))
        return text if not text or text.endswith("\n") else text + "\n"
    rows = table.to_dicts() if hasattr(table, "to_dicts") else table.to_pylist() if hasattr(table, "to_pylist") else table
    return "".join(json.dumps(row, default=str) + "\n" for row in rows)


class SqlSession:
    """Statements that share tables and variables. Close it, or use it in a `with` statement.

    server, token, fingerprint, team: as for `shoal.Client`; without a server, or with server="none", statements run on this machine by the
    command `shoal`. engine: of the jobs of a session on this machine.

    One thread runs statements at a time; `cancel` may be called on any.
    """

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None, *, fingerprint: Optional[str] = None,
                 team: Optional[str] = None, engine: Optional[str] = None, patience: float = _PATIENCE) -> None:
        self._lock = threading.Lock()
        self._current: Optional[threading.Event] = None
        self._end: Any
        if is_local(server):
            self._end = _Process(engine)
        else:
            self._end = _Server(Transport(choose_login(server, token, fingerprint), 30.0, 20.0), team, patience)

    @classmethod
    def of(cls, transport: Transport, team: Optional[str], patience: float) -> SqlSession:
        """A session of a client."""
        made = cls.__new__(cls)
        made._lock = threading.Lock()
        made._current = None
        made._end = _Server(transport, team, patience)
        return made

    def __enter__(self) -> SqlSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(self, text: str, *, rows: int = _ROWS, on_event: Optional[OnEvent] = None) -> SqlResult:
        """Runs statements; returns the rows of the last one that shows any, at most `rows`.

        on_event: is called with each event of their jobs and results, {"event": "progress", …}. SqlError for a wrong statement or one that
        failed, with the place in its text. An interrupt (Ctrl-C) stops the statements and lets a job save; a second one kills the job.
        """
        return self.run_unless(threading.Event(), text, rows=rows, on_event=on_event)

    def run_unless(self, dropped: threading.Event, text: str, *, rows: int = _ROWS, on_event: Optional[OnEvent] = None) -> SqlResult:
        """As `run`, for statements that `drop` may stop, also while they wait for those of another thread."""
        with self._lock:
            if dropped.is_set():
                raise SqlError("stopped before the statements began", "cancelled")
            self._current = dropped
            taken = _Taken(on_event)
            events = _Reader(self._end.run(text, rows))
            interrupted = False
            while True:
                try:
                    if taken.take(events.next()):
                        break
                except KeyboardInterrupt:
                    interrupted = True
                    self._end.cancel()
            if interrupted:
                raise KeyboardInterrupt
            return taken.result()

    def put(self, name: str, table: Any) -> None:
        """Makes a table of a pandas.DataFrame, a pyarrow.Table, a SqlResult or a list of dicts, at most 900 KB as JSON lines: they are sent
        as the text of a statement. Larger ones are files, which `load` reads."""
        if not _NAME.match(name):
            raise ValueError(f"got the table name {name!r}, expected letters, digits and _")
        lines = _json_lines(table)
        if not lines:
            raise ValueError("the table has no rows, and so no columns that could be told")
        if len(lines.encode()) > _MAX_PUT:
            raise ShoalError(f"the table has {len(lines.encode()) >> 10} KiB as JSON lines, more than {_MAX_PUT >> 10}; write a file, and "
                             "`load` it")
        # Neither a variable nor the end of the quotes; JSON reads both as they were.
        escaped = lines.replace("'", "\\u0027").replace("${", "\\u0024{")
        self.run(f"set shoal_put_{name} = '''\n{escaped}''';\nload jsonStr.`shoal_put_{name}` as {name};\nset shoal_put_{name} = '';", rows=1)

    def drop(self, dropped: threading.Event) -> None:
        """Stops the statements of `run_unless`, and no others."""
        dropped.set()
        if self._current is dropped:
            self.cancel()

    def cancel(self) -> None:
        """Stops the statements that run, from any thread; `run` then raises SqlError. A second time their job is killed."""
        self._end.cancel()

    def complete(self, text: str, cursor: int) -> Tuple[int, List[str]]:
        """What may stand before `cursor`, a character of the text: where it begins, and the candidates."""
        answer = self._end.ask("complete", text, len(text[:cursor].encode()))
        begin, candidates = answer.get("begin", 0), answer.get("candidates")
        before = text.encode()[:begin if isinstance(begin, int) else 0].decode(errors="ignore")
        return len(before), [str(one) for one in candidates] if isinstance(candidates, list) else []

    def inspect(self, text: str, cursor: int) -> str:
        """Lines about the name at a character of the text; empty if nothing is known of it."""
        return str(self._end.ask("inspect", text, len(text[:cursor].encode())).get("text", ""))

    def close(self) -> None:
        """Ends the session: its tables are gone."""
        self._end.close()


def is_local(server: Optional[str] = None) -> bool:
    """Whether no server is named, neither here nor by the environment nor by a login."""
    if server is not None:
        return server == "none"
    if os.environ.get("SHOAL_SERVER") == "none":
        return True
    try:
        choose_login(None, "x", None)
    except ConfigurationError:
        return True
    return False


_sessions: Dict[int, SqlSession] = {}  # of this process, and none of its parent
_sessions_lock = threading.Lock()


def sql(text: str, *, rows: int = _ROWS, on_event: Optional[OnEvent] = None) -> SqlResult:
    """Runs statements in the session of this program: at the server of SHOAL_SERVER or of `shoal login`, else on this machine.

    ::

        shoal.sql('load csv.`people.csv` as people;')
        print(shoal.sql('select town, count(*) as n from people group by town as towns;'))
    """
    with _sessions_lock:
        session = _sessions.get(os.getpid())
        if session is None:
            session = _sessions[os.getpid()] = SqlSession()
    return session.run(text, rows=rows, on_event=on_event)
