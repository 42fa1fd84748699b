"""Functions as jobs: shipped by cloudpickle with everything that their call needs, and their values read back."""
from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import pickle
import shutil
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union, overload

from ._errors import ShoalError, SubmissionError
from ._http import Request, Transport, quoted
from ._records import Output

_FOLDER = ".shoal-call"
_MAX_VALUE = 64 << 20
# What the tasks run. It needs no package but cloudpickle, which is shipped beside it.
_CALL = '''\
"""Calls the function of `shoal.Client.submit(function)` and stores what it returns in $SHOAL_OUTPUT."""
import json
import os
import pickle
import sys

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "call.json"), encoding="utf-8") as f:
    made_by = json.load(f)["python"]
if made_by != list(sys.version_info[:2]):
    sys.exit("the function was shipped by Python %d.%d, and this task runs Python %d.%d, which cannot read it; name a fitting "
             "interpreter with python=..." % (*made_by, *sys.version_info[:2]))
sys.path[:0] = [os.getcwd()]
sys.path.append(here)
with open(os.path.join(here, "call.pickle"), "rb") as f:
    function, args, kwargs = pickle.load(f)
value = function(*args, **kwargs)
output = os.environ.get("SHOAL_OUTPUT")
if output and os.environ.get("SHOAL_LOCAL_RANK", "0") == "0":
    try:
        text = json.dumps(value)
        plain = json.loads(text) == value
    except (TypeError, ValueError, RecursionError):
        plain = False
    os.makedirs(output, exist_ok=True)
    if plain:
        with open(os.path.join(output, "returned.json"), "w", encoding="utf-8") as f:
            f.write(text)
    else:
        import cloudpickle
        with open(os.path.join(output, "returned.pickle"), "wb") as f:
            cloudpickle.dump(value, f)
'''


class Function:
    """A function with the settings of its job; made by `shoal.task`. A call of it is a call of the function, here."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.options = function, dict(options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@overload
def task(function: Callable[..., Any]) -> Function: ...


@overload
def task(*, roles: Union[int, Mapping[str, Any], None] = None, name: Optional[str] = None, engine: Optional[str] = None,
         env: Optional[Mapping[str, str]] = None, files: Union[str, "os.PathLike[str]", None] = None,
         requirements: Sequence[str] = (), python: Optional[str] = None,
         job: Optional[Mapping[str, Any]] = None) -> Callable[[Callable[..., Any]], Function]: ...


def task(function: Optional[Callable[..., Any]] = None, **options: Any) -> Any:
    """Decorates a function that `Client.submit` runs in every task of a job.

    roles: the number of tasks, or roles as in a job file ({"worker": 4}). requirements: packages that pip installs before.
    files: a directory that the tasks start in. python: the interpreter of the tasks [python3]; its version must be that
    of this one. job: more fields of the job file ({"framework": "pytorch"}). name, engine, env: of the job.
    """
    known = ("roles", "name", "engine", "env", "files", "requirements", "python", "job")
    for option in options:
        if option not in known:
            raise TypeError(f"shoal.task: got {option}=…, expected one of {', '.join(known)}")
    return Function(function, options) if function is not None else lambda decorated: Function(decorated, options)


def _cloudpickle() -> Any:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        raise SubmissionError("submitting a function needs the package cloudpickle, which is not installed; `pip install cloudpickle`, "
                              "or submit a job file") from None
    return cloudpickle


def _pickled(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """By value with the function's own module, which the tasks do not have; other modules by name."""
    cloudpickle = _cloudpickle()
    module = inspect.getmodule(function)
    by_value = module is not None and module.__name__ != "__main__" and getattr(module, "__file__", None) is not None
    try:
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps((function, tuple(args), dict(kwargs))))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise SubmissionError(f"the function {getattr(function, '__name__', function)!r} or its arguments cannot be shipped: {error}"
                              ) from error
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)


@contextlib.contextmanager
def ship(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
         requirements: Sequence[str]) -> Iterator[str]:
    """A temporary directory with the call; its content becomes a part of the job's files."""
    pickled = _pickled(function, args, kwargs)
    with tempfile.TemporaryDirectory(prefix="shoal-call-") as directory:
        folder = os.path.join(directory, _FOLDER)
        package = os.path.dirname(os.path.abspath(_cloudpickle().__file__))
        shutil.copytree(package, os.path.join(folder, "cloudpickle"), ignore=shutil.ignore_patterns("__pycache__"))
        with open(os.path.join(folder, "call.pickle"), "wb") as f:
            f.write(pickled)
        with open(os.path.join(folder, "call.json"), "w", encoding="utf-8") as text:
            json.dump({"python": list(sys.version_info[:2])}, text)
        with open(os.path.join(folder, "call.py"), "w", encoding="utf-8") as text:
            text.write(_CALL)
        if requirements:
            with open(os.path.join(directory, "requirements.txt"), "w", encoding="utf-8") as text:
                text.write("".join(f"{one}\n" for one in requirements))
        yield directory


def read_returned(transport: Transport, target: str, outputs: List[Output], allow_pickle: bool) -> Dict[str, Any]:
    """The values by task."""
    latest: Dict[str, Output] = {}
    for one in outputs:
        known = latest.get(one.task)
        if one.path in ("returned.json", "returned.pickle") and (known is None or known.attempt < one.attempt):
            latest[one.task] = one
    values = {}
    for name, one in sorted(latest.items(), key=lambda item: (item[0].rpartition("-")[0], int(item[0].rpartition("-")[2] or 0))):
        if one.path == "returned.pickle" and not allow_pickle:
            raise ShoalError(f"{name} returned a value that JSON does not hold; returned(allow_pickle=True) reads it, which runs code of "
                             "the task here")
        if one.bytes > _MAX_VALUE:
            raise ShoalError(f"{name} returned {one.bytes} bytes, more than 64 MiB; write it to $SHOAL_OUTPUT and download it")
        body = transport.call(Request("GET", f"{target}/{quoted(name)}/{one.attempt}", {"path": one.path})).body
        values[name] = json.loads(body) if one.path == "returned.json" else pickle.loads(body)
    return values
