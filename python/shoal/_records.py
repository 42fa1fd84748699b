"""What the server tells about jobs, as typed values. Unknown fields of newer servers are kept in `raw` or ignored."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar

from ._errors import ShoalError

FINAL_STATES = ("succeeded", "failed", "cancelled")

T = TypeVar("T")


@dataclass(frozen=True)
class JobRecord:
    """A job as the server knew it at one moment. Times are in UTC; None: not yet."""

    id: str
    name: str
    state: str
    reason: str
    engine: str
    team: str
    user: str
    submitted: Optional[datetime]
    started: Optional[datetime]
    ended: Optional[datetime]
    result: Dict[str, Any] = field(default_factory=dict)
    labels: Dict[str, str] = field(default_factory=dict)
    last_seq: int = 0
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


@dataclass(frozen=True)
class Task:
    """The latest attempt of a task. `end` tells how it ended: exit code, signal, reason; empty while it has not."""

    role: str
    index: int
    attempt: int
    state: str
    end: Dict[str, Any] = field(default_factory=dict)
    will_restart: bool = False
    last_line: str = ""

    @property
    def name(self) -> str:
        return f"{self.role}-{self.index}"


@dataclass(frozen=True)
class Event:
    """A stored event of a job. `seq` counts from 1 within the job."""

    job: str
    seq: int
    time: Optional[datetime]
    type: str
    body: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LogLine:
    """A line of a task's output, without its line feed. Bytes that are not UTF-8 are replaced in `text`.

    offset: of the line's first byte in the output of this attempt (attempts count from 0).
    """

    task: str
    attempt: int
    offset: int
    text: str


@dataclass(frozen=True)
class Output:
    """A file that a task wrote to $SHOAL_OUTPUT; `path` is relative, parts are separated by '/'."""

    task: str
    attempt: int
    path: str
    bytes: int
    link: bool = False


def parse_time(value: Any) -> Optional[datetime]:
    """A time of RFC 3339; Python before 3.11 reads no 'Z' and only three or six digits of a second."""
    if not isinstance(value, str) or not value:
        return None
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", value)
    if match is None:
        return None
    fraction = (match.group(2) or "0")[:6].ljust(6, "0")
    zone = "+00:00" if match.group(3) == "Z" else match.group(3)
    try:
        return datetime.fromisoformat(f"{match.group(1)}.{fraction}{zone}").astimezone(timezone.utc)
    except ValueError:
        return None


def format_time(value: datetime) -> str:
    """RFC 3339 in UTC; a time without a zone is a local time, as datetime defines it."""
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""


def _number(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _object(data: Mapping[str, Any], name: str) -> Dict[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def parse_job(data: Any) -> JobRecord:
    if not isinstance(data, dict) or not _text(data, "id") or not _text(data, "state"):
        raise ShoalError("the server's answer is no job: it has no id or no state")
    return JobRecord(
        id=_text(data, "id"), name=_text(data, "name"), state=_text(data, "state"), reason=_text(data, "reason"),
        engine=_text(data, "engine"), team=_text(data, "team"), user=_text(data, "user"),
        submitted=parse_time(data.get("submitted")), started=parse_time(data.get("started")),
        ended=parse_time(data.get("ended")), result=_object(data, "result"),
        labels={k: str(v) for k, v in _object(data, "labels").items()}, last_seq=_number(data, "last_seq"), raw=data)


def parse_task(data: Mapping[str, Any]) -> Task:
    return Task(_text(data, "role"), _number(data, "index"), _number(data, "attempt"), _text(data, "state"),
                _object(data, "end"), bool(data.get("will_restart", False)), _text(data, "last_line"))


def parse_event(data: Mapping[str, Any]) -> Event:
    return Event(_text(data, "job"), _number(data, "seq"), parse_time(data.get("time")), _text(data, "type"),
                 _object(data, "body"))


def parse_output(data: Mapping[str, Any]) -> Output:
    return Output(_text(data, "task"), _number(data, "attempt"), _text(data, "path"), _number(data, "bytes"),
                  bool(data.get("link", False)))


def parse_items(data: Any, parse: Callable[[Mapping[str, Any]], T]) -> List[T]:
    items = data.get("items") if isinstance(data, dict) else None
    if not isinstance(items, list):
        raise ShoalError("the server's answer has no list of items")
    return [parse(item) for item in items if isinstance(item, dict)]
