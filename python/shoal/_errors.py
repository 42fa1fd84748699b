"""The errors of the client, with the sentences of the server."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence


class ShoalError(Exception):
    """Every error of this client. The text is one sentence: the failure, its place, and the remedy."""


@dataclass(frozen=True)
class FieldError:
    """One wrong field of a request or of a job file; line and column count from 1, 0 where they are not known."""

    field: str
    message: str
    line: int = 0
    column: int = 0


class ApiError(ShoalError):
    """The server refused a request.

    status: the HTTP status (docs/rest.md). detail: the server's sentence. errors: the wrong fields, for status 422.
    """

    def __init__(self, status: int, detail: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors: List[FieldError] = list(errors)

    def __reduce__(self) -> Any:
        return (type(self), (self.status, self.detail, self.errors))


class NotSignedInError(ApiError):
    """The token is missing, unknown, expired or revoked (401)."""


class NotAllowedError(ApiError):
    """The user's role or the token's scopes do not suffice (403)."""


class NotFoundError(ApiError):
    """The object does not exist or belongs to a team of other people (404)."""


class ServerUnavailableError(ShoalError, ConnectionError):
    """The server cannot be reached, or has not answered for as long as the client tries."""


class ConfigurationError(ShoalError, ValueError):
    """No server or no token is named, or the login file is damaged."""


class SubmissionError(ShoalError, ValueError):
    """The job cannot be submitted from here: its files, its description or its function do not fit."""


class JobFailedError(ShoalError):
    """A job has ended without success: `job_id`, its `state` and the `reason` of its end."""

    def __init__(self, job_id: str, state: str, reason: str) -> None:
        super().__init__(f"{job_id} {state}: {reason}" if reason else f"{job_id} {state}")
        self.job_id, self.state, self.reason = job_id, state, reason

    def __reduce__(self) -> Any:
        return (type(self), (self.job_id, self.state, self.reason))


class SqlError(ShoalError):
    """A statement of SQL is wrong or has failed: the sentences show its place. `code`: "invalid argument", "cancelled", …"""

    def __init__(self, sentence: str, code: str = "") -> None:
        super().__init__(sentence)
        self.code = code

    def __reduce__(self) -> Any:
        return (type(self), (str(self), self.code))


_BY_STATUS: Dict[int, Any] = {401: NotSignedInError, 403: NotAllowedError, 404: NotFoundError}


def _field_error(value: Any) -> Optional[FieldError]:
    if not isinstance(value, dict):
        return None
    line, column = value.get("line", 0), value.get("column", 0)
    return FieldError(str(value.get("field", "")), str(value.get("message", "")), line if isinstance(line, int) else 0,
                      column if isinstance(column, int) else 0)


def error_of_reply(status: int, document: Any, url: str) -> ApiError:
    """The exception for a reply; `document` is its parsed problem document, or None if it has none."""
    detail, errors = "", []
    if isinstance(document, dict):
        detail = str(document.get("detail", ""))
        listed = document.get("errors")
        errors = [e for e in map(_field_error, listed if isinstance(listed, list) else []) if e is not None]
    if not detail:
        detail = f"the server {url} answered with status {status}"
    made: ApiError = _BY_STATUS.get(status, ApiError)(status, detail, errors)
    return made
