"""`shoal.Client` and `shoal.Job`: jobs of a server, for programs."""
from __future__ import annotations

import os
import threading
from datetime import datetime
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import JobFailedError, NotFoundError, ShoalError
from ._http import Request, Transport, quoted
from ._login import choose_login
from ._records import (Event, JobRecord, LogLine, Output, Task, format_time, parse_event, parse_items, parse_job, parse_output,
                       parse_task)
from ._files import upload
from ._groups import Group
from ._result import SqlResult
from ._sql import OnEvent, SqlSession
from ._stream import Followed, LogKey, LogPosition, Stream
from ._submit import Options, Submission, prepare

_PAGE = 200
_LOG_PIECE = 4 << 20

Source = Union[str, "os.PathLike[str]", Mapping[str, Any], Callable[..., Any]]


class Client:
    """A connection to a Shoal server. Thread-safe; close it, or use it in a `with` statement.

    server, token, fingerprint: otherwise SHOAL_SERVER and SHOAL_TOKEN, otherwise those of the last `shoal login`. Several
    servers of one store are separated by commas: the one that leads is asked.
    team: that owns submitted jobs; None: the server decides. timeout: seconds for one request. retry: seconds for which
    a request is repeated while the server cannot be reached, if a repetition has no further effect. patience: the same
    for `wait`, and for following logs and events.

    Errors: ConfigurationError without a server or token; ApiError with the server's sentence when it refuses;
    ServerUnavailableError when it cannot be reached.
    """

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None, *, fingerprint: Optional[str] = None,
                 team: Optional[str] = None, timeout: float = 30.0, retry: float = 20.0, patience: float = 60.0) -> None:
        self.team, self.patience = team, patience
        self._transport = Transport(choose_login(server, token, fingerprint), timeout, retry)
        self._sql: Optional[SqlSession] = None
        self._sql_lock = threading.Lock()

    @property
    def url(self) -> str:
        return self._transport.login.url

    def __repr__(self) -> str:
        return f"shoal.Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections and the session of `sql`; the client may be used again."""
        with self._sql_lock:
            session, self._sql = self._sql, None
        if session is not None:
            session.close()
        self._transport.close()

    def me(self) -> Dict[str, Any]:
        """The user and the rights of the token: user, administrator, teams, scopes, token."""
        return _object(self._transport.get("/me"))

    def version(self) -> str:
        """The server's version."""
        return str(_object(self._transport.get("/server")).get("version", ""))

    def engines(self) -> List[Dict[str, Any]]:
        """The engines that jobs can name: name and kind."""
        return parse_items(self._transport.get("/engines"), dict)

    def sql(self, text: str, *, rows: int = 1000, on_event: Optional[OnEvent] = None) -> SqlResult:
        """Runs statements of SQL (docs/sql.md) in this client's session at the server, whose tables later calls see; see SqlSession.run."""
        return self._own_session().run(text, rows=rows, on_event=on_event)

    def _own_session(self) -> SqlSession:
        with self._sql_lock:
            if self._sql is None:
                self._sql = self.sql_session()
            return self._sql

    def sql_session(self, team: Optional[str] = None) -> SqlSession:
        """Another session, with tables of its own. team: otherwise the client's."""
        return SqlSession.of(self._transport, team or self.team, self.patience)

    def submit(self, source: Source, *args: Any, name: Optional[str] = None,  # pylint: disable=too-many-arguments
               files: Union[str, "os.PathLike[str]", None] = None, engine: Optional[str] = None, team: Optional[str] = None,
               set: Union[Mapping[str, Any], Sequence[str]] = (),  # pylint: disable=redefined-builtin
               directory: Optional[str] = None, document: Union[str, int, None] = None,
               kwargs: Optional[Mapping[str, Any]] = None, roles: Union[int, Mapping[str, Any], None] = None,
               env: Optional[Mapping[str, str]] = None, requirements: Sequence[str] = (), python: Optional[str] = None,
               job: Optional[Mapping[str, Any]] = None) -> Job:
        """Submits a job and returns at once.

        source: the path of a job file or of a job description of another system (TFJob, sbatch script, …; it is
        converted by the command `shoal import`); the content of a job file as a dict; or a function, which runs in every
        task with `args` and `kwargs`.

        name, engine, team: of the job. files: a directory that is uploaded and that every task starts in. set: overrides,
        {"roles.worker.replicas": 8} or ["PATH=VALUE"]. directory: where programs start on the server's machine [the
        file's]. document: which of several jobs in a file. For a function: kwargs, roles, env, requirements, python and
        job, see `shoal.task`.

        A repetition after a lost answer finds the first job. Errors: SubmissionError for what cannot be submitted from
        here; ApiError of status 422 with the wrong fields in `errors`.
        """
        options = Options(name, files, engine, team, set, directory, document, kwargs, roles, env, requirements, python, job)
        with prepare(source, args, options) as submission:
            body = self._body(submission)
            if submission.files:
                body["manifest"] = upload(self._transport, submission.files, body.get("team"))
            headers = {"Idempotency-Key": os.urandom(16).hex()}
            return Job(self, parse_job(self._transport.post("/jobs", body, True, headers)))

    def submit_all(self, source: Union[str, "os.PathLike[str]", Mapping[str, Any]], **options: Any) -> List[Union[Job, Group]]:
        """Submits every job of a file with several YAML documents, a matrix or a sweep (docs/triggers.md), all or none: what they
        became, in the order of the file. Parameters as for `submit`; `files` are those of the first document."""
        with prepare(source, (), Options(**options), True) as submission:
            body = self._body(submission)
            if submission.files:
                body["manifests"] = [upload(self._transport, submission.files, body.get("team"))]
            headers = {"Idempotency-Key": os.urandom(16).hex()}
            reply = self._transport.post("/submissions", body, True, headers)
        made: List[Union[Job, Group]] = []
        for item in parse_items(reply, dict):
            made.append(self.group(str(item.get("id"))) if item.get("kind") == "group" else self.job(str(item.get("id"))))
        return made

    def group(self, group_id: str) -> Group:
        """The group with this ID, or the only one whose ID begins so. NotFoundError without one."""
        found = list(self.groups(group_id))
        exact = [group for group in found if group.id == group_id] or found
        if len(exact) > 1:
            raise ShoalError(f"{group_id} is the beginning of several groups: {exact[0].id}, {exact[1].id}, …")
        if not exact:
            raise NotFoundError(404, f"there is no group {group_id} that you may see")
        return exact[0]

    def groups(self, prefix: str = "") -> Iterator[Group]:
        """The groups of the user's teams whose IDs begin so, by ID, a page at a time as they are asked for."""
        after = None
        while True:
            page = self._transport.get("/groups", {"id": prefix or None, "limit": _PAGE, "after": after})
            for record in parse_items(page, dict):
                yield Group(self, record)
            after = page.get("next")
            if not after:
                return

    def plan(self, source: Source, *args: Any, **options: Any) -> Dict[str, Any]:
        """Checks a job on the server and returns its plan; starts and uploads nothing. Parameters as for `submit`."""
        with prepare(source, args, Options(**options)) as submission:
            body = self._body(submission)
            body.pop("directory", None)
            return _object(self._transport.post("/plan", body, True))

    def _body(self, submission: Submission) -> Dict[str, Any]:
        team = submission.team or self.team
        return {**submission.body, **({"team": team} if team else {})}

    def job(self, job_id: str) -> Job:
        """The job with this ID, or the only one whose ID begins so. NotFoundError without one."""
        try:
            return Job(self, parse_job(self._transport.get(f"/jobs/{quoted(job_id)}")))
        except NotFoundError:
            page = self._transport.get("/jobs", {"id": job_id, "limit": 2})
            found = parse_items(page, parse_job)
            if not found:
                raise
            if len(found) > 1:
                raise ShoalError(f"{job_id} is the beginning of several jobs: {found[0].id}, {found[1].id}, …") from None
            return Job(self, found[0])

    def jobs(self, *, state: Union[str, Iterable[str], None] = None, team: Optional[str] = None, name: Optional[str] = None,
             user: Optional[str] = None, engine: Optional[str] = None, since: Optional[datetime] = None,
             until: Optional[datetime] = None, limit: Optional[int] = None) -> Iterator[Job]:
        """The jobs of the user's teams, newest first, a page at a time as they are asked for.

        state: one or several. name: the beginning of names. since, until: times of submission. limit: at most so many.
        """
        states = state if state is None or isinstance(state, str) else ",".join(state)
        query: Dict[str, Any] = {"state": states, "team": team, "name": name, "user": user, "engine": engine,
                                 "since": None if since is None else format_time(since),
                                 "until": None if until is None else format_time(until)}
        return self._pages(query, limit)

    def _pages(self, query: Dict[str, Any], limit: Optional[int]) -> Iterator[Job]:
        left = limit if limit is not None else float("inf")
        after = None
        while left > 0:
            page = self._transport.get("/jobs", {**query, "limit": int(min(_PAGE, left)), "after": after})
            for record in parse_items(page, parse_job):
                yield Job(self, record)
                left -= 1
            after = page.get("next")
            if not after:
                return

    def events(self, *, team: Optional[str] = None) -> Iterator[Event]:
        """The events of all jobs of the user's teams as they happen; endless. After a broken connection it goes on behind the
        last event that it has yielded, or with the next one if there was none."""
        return iter(self._events_stream(team))

    def _events_stream(self, team: Optional[str]) -> Followed[Event]:
        at = ["now"]
        stream = Stream(self._transport, "/events", lambda: {"team": team, "after": at[0]}, self.patience)

        def events() -> Iterator[Event]:
            for kind, data in stream:
                if kind == "event":
                    at[0] = str(data.get("cursor") or at[0])
                    yield parse_event(data)

        return Followed(stream, events())


class Job:
    """A job of a server. `record` is what is known of it; `state` and `result` ask the server until it has ended."""

    def __init__(self, client: Client, record: JobRecord) -> None:
        self._client, self._lock = client, threading.Lock()
        self.record = record

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def state(self) -> str:
        """pending, admitted, starting, running, suspended, finishing, succeeded, failed or cancelled; now."""
        return self._now().state

    @property
    def reason(self) -> str:
        """Of the end, the wait or the stall; one sentence or empty; now."""
        return self._now().reason

    @property
    def result(self) -> Dict[str, Any]:
        """What the job reported at its end; empty until then."""
        return self._now().result

    @property
    def tasks(self) -> List[Task]:
        """The latest attempt of each task, now."""
        return parse_items(self._transport.get(self._target("/tasks")), parse_task)

    def refresh(self) -> JobRecord:
        """Asks the server for the job as it is now."""
        return self._learn(parse_job(self._transport.get(self._target())))

    def wait(self, timeout: Optional[float] = None, *, check: bool = False) -> JobRecord:
        """Returns the job when it has ended and its resources are released.

        timeout: TimeoutError after so many seconds; the job goes on. check: JobFailedError unless it succeeded. A server
        that is away is tried again for `patience` seconds, then ServerUnavailableError. Ctrl-C ends the wait, not the job.
        """
        for record in self._wait_stream(timeout):
            if check and record.state != "succeeded":
                raise JobFailedError(record.id, record.state, record.reason)
            return record
        raise ShoalError(f"waiting for {self.id} was ended")

    def events(self, *, follow: bool = True, after: int = 0) -> Iterator[Event]:
        """Its stored events with a `seq` above `after`. follow: until it has ended, each once, also over broken
        connections."""
        return iter(self._events_stream(after)) if follow else self._events_until_now(after)

    def logs(self, task: Optional[str] = None, *, follow: bool = True, attempt: Optional[int] = None,
             tail: Optional[int] = None) -> Iterator[LogLine]:
        """The lines that its tasks print, each once.

        task: of this task (worker-0) or role only. attempt: of this one only, from 0. tail: of what is there, only the
        last lines of each task. follow: until the job has ended, also over broken connections; lines of different tasks
        alternate as they arrive.
        """
        return iter(self._logs_stream(task, attempt, tail)) if follow else self._logs_until_now(task, attempt, tail)

    def stop(self, *, now: bool = False) -> JobRecord:
        """Lets the tasks save and end, or kills them `now`; returns at once. An ended job is no error."""
        return self._act("stop", {"now": now}, True)

    def suspend(self) -> JobRecord:
        """Lets the tasks save and end, to be resumed later; returns at once."""
        return self._act("suspend", {}, False)

    def resume(self) -> JobRecord:
        """Queues a suspended job again."""
        return self._act("resume", {}, False)

    def scale(self, role: str, replicas: int) -> JobRecord:
        """Sets the number of tasks of an elastic role; returns at once."""
        return self._act("scale", {"role": role, "replicas": replicas}, True)

    def remove(self) -> None:
        """Removes an ended job with its logs and outputs."""
        self._transport.call(Request("DELETE", self._target(), repeatable=False))

    def outputs(self) -> List[Output]:
        """The files that tasks wrote to $SHOAL_OUTPUT."""
        return parse_items(self._transport.get(self._target("/outputs")), parse_output)

    def download(self, to: Union[str, "os.PathLike[str]"], *, task: Optional[str] = None) -> List[str]:
        """Copies the outputs to TO/TASK.ATTEMPT/PATH and returns the paths. A download that broke goes on; a file appears
        when it is whole. Links of the outputs are left out."""
        from ._download import download

        return download(self._transport, self._target("/outputs"), self.outputs(), os.fspath(to), task)

    def returned(self, *, allow_pickle: bool = False) -> Dict[str, Any]:
        """What the function of `submit(function)` returned, by task, from the last attempt of each.

        Values that JSON holds are read as such. Others are pickled: unpickling runs code of the task, so it needs
        allow_pickle=True.
        """
        from ._functions import read_returned

        return read_returned(self._transport, self._target("/outputs"), self.outputs(), allow_pickle)

    def __repr__(self) -> str:
        return f"shoal.Job({self.id!r}, {self.record.state})"

    @property
    def _transport(self) -> Transport:
        return self._client._transport  # pylint: disable=protected-access

    def _target(self, rest: str = "") -> str:
        return f"/jobs/{quoted(self.record.id)}{rest}"

    def _now(self) -> JobRecord:
        return self.record if self.record.is_final else self.refresh()

    def _learn(self, record: JobRecord) -> JobRecord:
        with self._lock:
            if record.last_seq >= self.record.last_seq:
                self.record = record
        return record

    def _act(self, action: str, body: Dict[str, Any], repeatable: bool) -> JobRecord:
        return self._learn(parse_job(self._transport.post(self._target("/" + action), body, repeatable)))

    def _wait_stream(self, timeout: Optional[float]) -> Followed[JobRecord]:
        stream = Stream(self._transport, self._target("/stream"), lambda: {"events": False}, self._client.patience, timeout)

        def records() -> Iterator[JobRecord]:
            for kind, data in stream:
                if kind == "end":
                    yield self._learn(parse_job(data))
                    return

        return Followed(stream, records())

    def _events_stream(self, after: int) -> Followed[Event]:
        at = [after]
        stream = Stream(self._transport, self._target("/events"), lambda: {"after": at[0]}, self._client.patience)

        def events() -> Iterator[Event]:
            for kind, data in stream:
                if kind == "end":
                    self._learn(parse_job(data))
                    return
                if kind == "event" and (event := parse_event(data)).seq > at[0]:
                    at[0] = event.seq
                    yield event

        return Followed(stream, events())

    def _events_until_now(self, after: int) -> Iterator[Event]:
        position: Any = after
        while position is not None:
            page = self._transport.get(self._target("/events"), {"after": position, "limit": 1000})
            yield from parse_items(page, parse_event)
            position = page.get("next")

    def _logs_stream(self, task: Optional[str], attempt: Optional[int], tail: Optional[int]) -> Followed[LogLine]:
        at = LogPosition()
        started = [tail is None]

        def query() -> Dict[str, Any]:
            if not started[0]:
                at.offsets.update({key: self._read_log(key, tail=tail, limit=1)[0] for key in self._logs_now(task, attempt)})
                started[0] = True
            return {"logs": True, "events": False, "task": task, "attempt": attempt, "from": at.text()}

        stream = Stream(self._transport, self._target("/stream"), query, self._client.patience)

        def lines() -> Iterator[LogLine]:
            for kind, data in stream:
                if kind == "log":
                    yield from at.take(data)
                if kind == "end":
                    self._learn(parse_job(data))
                    yield from at.rest()
                    return

        return Followed(stream, lines())

    def _logs_until_now(self, task: Optional[str], attempt: Optional[int], tail: Optional[int]) -> Iterator[LogLine]:
        for key, size in self._logs_now(task, attempt).items():
            at = LogPosition()
            offset = 0 if tail is None else self._read_log(key, tail=tail, limit=1)[0]
            while offset < size:
                _, piece = self._read_log(key, offset=offset, limit=min(_LOG_PIECE, size - offset))
                if not piece:
                    break
                yield from at.add(key, offset, piece)
                offset += len(piece)
            yield from at.rest()

    def _logs_now(self, task: Optional[str], attempt: Optional[int]) -> Dict[LogKey, int]:
        """The chosen logs with their sizes."""
        chosen: Dict[LogKey, int] = {}
        for log in parse_items(self._transport.get(self._target("/logs")), dict):
            key: LogKey = (str(log["role"]), int(log["index"]), int(log["attempt"]))
            if task in (None, key[0], f"{key[0]}-{key[1]}") and attempt in (None, key[2]):
                chosen[key] = int(log["bytes"])
        return chosen

    def _read_log(self, key: LogKey, **query: Optional[int]) -> Tuple[int, bytes]:
        reply = self._transport.call(Request("GET", self._target(f"/logs/{quoted(f'{key[0]}-{key[1]}')}/{key[2]}"), query))
        offset = reply.headers.get("Shoal-Offset", "0")
        return (int(offset) if offset.isdigit() else 0), reply.body


def _object(value: Any) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise ShoalError("the server's answer is no JSON object")
    return value
