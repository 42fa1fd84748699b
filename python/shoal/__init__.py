"""Shoal for Python programs: jobs of a server (`shoal server`), and the parameter server (`import shoal.ps`).

::

    import shoal

    with shoal.Client() as client:                     # the server of `shoal login`
        job = client.submit("job.yaml", set={"roles.worker.replicas": 4})
        for line in job.logs():
            print(line.task, line.text)
        job.wait(check=True)

docs/python.md is the guide. This package needs nothing but Python; `shoal.ps` needs numpy, functions as jobs cloudpickle.
"""
from ._aio import AsyncClient, AsyncJob
from ._client import Client, Job
from ._errors import (ApiError, ConfigurationError, FieldError, JobFailedError, NotAllowedError, NotFoundError, NotSignedInError,
                      ServerUnavailableError, ShoalError, SqlError, SubmissionError)
from ._functions import Function, task
from ._groups import Group
from ._records import Event, JobRecord, LogLine, Output, Task
from ._result import SqlResult
from ._sql import SqlSession, sql

__all__ = ["ApiError", "AsyncClient", "AsyncJob", "Client", "ConfigurationError", "Event", "FieldError", "Function", "Group", "Job", "JobFailedError", "JobRecord",
           "LogLine", "NotAllowedError", "NotFoundError", "NotSignedInError", "Output", "ServerUnavailableError", "ShoalError",
           "SqlError", "SqlResult", "SqlSession", "SubmissionError", "Task", "sql", "task"]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext shoal` (docs/notebook.md)."""
    from ._magics import load

    load(shell)
