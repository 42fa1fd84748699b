"""`shoal.Group`: the jobs of a matrix or a sweep together (docs/triggers.md)."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ._errors import JobFailedError, ShoalError
from ._http import Request, quoted
from ._records import FINAL_STATES

if TYPE_CHECKING:
    from ._client import Client, Job

_PAUSE = 1.0  # seconds between two questions of `wait`


class Group:
    """A group of a server. `record` is what the server said last: id, name, state, reason, size, counts and, after `refresh`,
    the members under `items`."""

    def __init__(self, client: Client, record: Dict[str, Any]) -> None:
        if not isinstance(record.get("id"), str) or not isinstance(record.get("team"), str):
            raise ShoalError("the server's answer is no group")
        self._client, self.record = client, record

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def name(self) -> str:
        return str(self.record.get("name", ""))

    @property
    def state(self) -> str:
        """running, stopping, succeeded, failed or cancelled; now."""
        return str(self.refresh().get("state", ""))

    @property
    def members(self) -> List[Dict[str, Any]]:
        """index, id, state, values and, of a sweep, objective and rung, now; of a sweep the best first."""
        return [item for item in self.refresh().get("items", []) if isinstance(item, dict)]

    def refresh(self) -> Dict[str, Any]:
        """Asks the server for the group as it is now."""
        record = self._client._transport.get(self._target())  # pylint: disable=protected-access
        if not isinstance(record, dict):
            raise ShoalError("the server's answer is no JSON object")
        self.record = record
        return record

    def best(self) -> Optional[Dict[str, Any]]:
        """The member of a sweep with the best objective so far; None before one has reported it."""
        return next((item for item in self.members if "objective" in item), None)

    def job(self, index: int) -> Job:
        """The job of a member. NotFoundError while it has none."""
        return self._client.job(f"{self.id}-{index}")

    def wait(self, timeout: Optional[float] = None, *, check: bool = False) -> Dict[str, Any]:
        """Returns the group when all its members have ended; asks once a second.

        timeout: TimeoutError after so many seconds; the group goes on. check: JobFailedError unless it succeeded.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.refresh().get("state") not in FINAL_STATES:
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"group {self.id} has not ended within {timeout} seconds")
            time.sleep(_PAUSE if end is None else max(0.0, min(_PAUSE, end - time.monotonic())))
        if check and self.record["state"] != "succeeded":
            raise JobFailedError(self.id, str(self.record["state"]), str(self.record.get("reason", "")))
        return self.record

    def stop(self, *, now: bool = False) -> None:
        """Lets the members save and end, or kills them `now`, and submits no more; returns at once."""
        self._client._transport.post(self._target("/stop"), {"now": now}, True)  # pylint: disable=protected-access

    def remove(self) -> None:
        """Removes the record of an ended group; the jobs of its members stay."""
        self._client._transport.call(Request("DELETE", self._target(), repeatable=False))  # pylint: disable=protected-access

    def __repr__(self) -> str:
        return f"shoal.Group({self.id!r}, {self.record.get('state')})"

    def _target(self, rest: str = "") -> str:
        return f"/teams/{quoted(str(self.record['team']))}/groups/{quoted(self.id)}{rest}"
