"""`shoal.AsyncClient` and `shoal.AsyncJob`: the client for asyncio, over threads (docs/adr/0242-async-client-over-threads.md).

A request runs in a pool of threads; each follower has a thread of its own. Cancelling a task ends its follower.
"""
from __future__ import annotations

import asyncio
import collections
import functools
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, AsyncGenerator, AsyncIterator, Callable, Deque, Dict, Generic, Iterable, Iterator, List, Optional, Tuple, TypeVar, Union

from ._client import Client, Job, Source
from ._errors import JobFailedError, ShoalError
from ._records import Event, JobRecord, LogLine, Output, Task
from ._result import SqlResult
from ._stream import Followed

T = TypeVar("T")
_REQUESTS = 8  # at once
_AHEAD = 1000  # items that a follower's thread reads before its user takes them
_END = object()


class _Pump(Generic[T]):
    """Items of a follower from its thread to a loop, which is woken once for all that are there."""

    def __init__(self, followed: Followed[T]) -> None:
        self._followed, self._loop, self._wake = followed, asyncio.get_running_loop(), asyncio.Event()
        self._ready: Deque[Tuple[object, Optional[BaseException]]] = collections.deque()
        self._slots = threading.Semaphore(_AHEAD)
        self._woken = self._closed = False
        threading.Thread(target=self._run, name="shoal-follower", daemon=True).start()

    def _run(self) -> None:
        failure: Optional[BaseException] = None
        try:
            for item in self._followed:
                self._slots.acquire()
                if self._closed:
                    break
                self._put(item, None)
        except BaseException as error:  # pylint: disable=broad-except
            failure = error
        try:
            self._put(_END, failure)
        except RuntimeError:
            pass  # the loop has ended

    def _put(self, item: object, failure: Optional[BaseException]) -> None:
        self._ready.append((item, failure))
        if not self._woken:  # `items` resets it before it takes what is there
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake.set)

    async def items(self) -> AsyncGenerator[T, None]:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                self._woken = False
                while self._ready:
                    item, failure = self._ready.popleft()
                    self._slots.release()
                    if failure is not None:
                        raise failure
                    if item is _END:
                        return
                    yield item  # type: ignore[misc]
        finally:
            self._closed = True
            self._followed.close()
            self._slots.release()


class AsyncClient:
    """`shoal.Client` for asyncio: the same parameters, methods and errors; what waits is awaited.

    Use it in `async with`, or close it. One client serves any number of tasks of one or several loops.
    """

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None, **options: Any) -> None:
        self._client = Client(server, token, **options)
        self._pool = ThreadPoolExecutor(_REQUESTS, thread_name_prefix="shoal-request")

    @property
    def url(self) -> str:
        return self._client.url

    def __repr__(self) -> str:
        return f"shoal.AsyncClient({self.url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends its threads when their requests are answered; the client takes no more."""
        self._pool.shutdown(wait=False)
        self._client.close()

    async def call(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Runs a blocking call on a thread of this client."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, functools.partial(function, *args, **options))

    async def me(self) -> Dict[str, Any]:
        return await self.call(self._client.me)

    async def version(self) -> str:
        return await self.call(self._client.version)

    async def engines(self) -> List[Dict[str, Any]]:
        return await self.call(self._client.engines)

    async def submit(self, source: Source, *args: Any, **options: Any) -> AsyncJob:
        """As Client.submit."""
        return AsyncJob(self, await self.call(self._client.submit, source, *args, **options))

    async def sql(self, text: str, **options: Any) -> SqlResult:
        """As Client.sql. Cancelling it stops the statements."""
        session = await self.call(self._client._own_session)  # pylint: disable=protected-access
        dropped = threading.Event()
        running = asyncio.ensure_future(self.call(session.run_unless, dropped, text, **options))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            running.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody waits for it
            await self.call(session.drop, dropped)
            raise

    async def plan(self, source: Source, *args: Any, **options: Any) -> Dict[str, Any]:
        """As Client.plan."""
        return await self.call(self._client.plan, source, *args, **options)

    async def job(self, job_id: str) -> AsyncJob:
        return AsyncJob(self, await self.call(self._client.job, job_id))

    async def jobs(self, *, state: Union[str, Iterable[str], None] = None, team: Optional[str] = None, name: Optional[str] = None,
                   user: Optional[str] = None, engine: Optional[str] = None, since: Optional[datetime] = None,
                   until: Optional[datetime] = None, limit: Optional[int] = None) -> AsyncIterator[AsyncJob]:
        """As Client.jobs, for `async for`."""
        jobs = self._client.jobs(state=state, team=team, name=name, user=user, engine=engine, since=since, until=until, limit=limit)
        while (job := await self.call(next, jobs, None)) is not None:
            yield AsyncJob(self, job)

    async def events(self, *, team: Optional[str] = None) -> AsyncIterator[Event]:
        """As Client.events, for `async for`."""
        followed = await self.call(self._client._events_stream, team)  # pylint: disable=protected-access
        async for event in _Pump(followed).items():
            yield event


class AsyncJob:
    """`shoal.Job` for asyncio. `record` is what is known of the job."""

    def __init__(self, client: AsyncClient, job: Job) -> None:
        self._client, self._job = client, job

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def record(self) -> JobRecord:
        return self._job.record

    def __repr__(self) -> str:
        return f"shoal.AsyncJob({self.id!r}, {self.record.state})"

    async def state(self) -> str:
        return await self._client.call(lambda: self._job.state)

    async def result(self) -> Dict[str, Any]:
        return await self._client.call(lambda: self._job.result)

    async def tasks(self) -> List[Task]:
        return await self._client.call(lambda: self._job.tasks)

    async def refresh(self) -> JobRecord:
        return await self._client.call(self._job.refresh)

    async def wait(self, timeout: Optional[float] = None, *, check: bool = False) -> JobRecord:
        """As Job.wait. Cancelling it ends the wait, not the job."""
        items = _Pump(self._job._wait_stream(timeout)).items()  # pylint: disable=protected-access
        try:
            async for record in items:
                if check and record.state != "succeeded":
                    raise JobFailedError(record.id, record.state, record.reason)
                return record
        finally:
            await items.aclose()
        raise ShoalError(f"waiting for {self.id} was ended")

    async def events(self, *, follow: bool = True, after: int = 0) -> AsyncIterator[Event]:
        """As Job.events, for `async for`."""
        if not follow:
            async for event in self._each(self._job.events(follow=False, after=after)):
                yield event
            return
        async for event in _Pump(self._job._events_stream(after)).items():  # pylint: disable=protected-access
            yield event

    async def logs(self, task: Optional[str] = None, *, follow: bool = True, attempt: Optional[int] = None,
                   tail: Optional[int] = None) -> AsyncIterator[LogLine]:
        """As Job.logs, for `async for`."""
        if not follow:
            async for line in self._each(self._job.logs(task, follow=False, attempt=attempt, tail=tail)):
                yield line
            return
        async for line in _Pump(self._job._logs_stream(task, attempt, tail)).items():  # pylint: disable=protected-access
            yield line

    async def stop(self, *, now: bool = False) -> JobRecord:
        return await self._client.call(self._job.stop, now=now)

    async def suspend(self) -> JobRecord:
        return await self._client.call(self._job.suspend)

    async def resume(self) -> JobRecord:
        return await self._client.call(self._job.resume)

    async def scale(self, role: str, replicas: int) -> JobRecord:
        return await self._client.call(self._job.scale, role, replicas)

    async def remove(self) -> None:
        await self._client.call(self._job.remove)

    async def outputs(self) -> List[Output]:
        return await self._client.call(self._job.outputs)

    async def download(self, to: Union[str, "os.PathLike[str]"], *, task: Optional[str] = None) -> List[str]:
        return await self._client.call(self._job.download, to, task=task)

    async def returned(self, *, allow_pickle: bool = False) -> Dict[str, Any]:
        return await self._client.call(self._job.returned, allow_pickle=allow_pickle)

    async def _each(self, items: Iterator[T]) -> AsyncIterator[T]:
        def some() -> List[T]:
            return list(itertools.islice(items, _AHEAD))

        while batch := await self._client.call(some):
            for item in batch:
                yield item
