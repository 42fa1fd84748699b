"""What a submission sends: from a job file, a foreign description, a dict or a function."""
from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from ._errors import SubmissionError
from ._functions import Function, ship

_LOG = logging.getLogger("shoal")
_MAX_FILE = 1 << 20


@dataclass
class Options:
    """The keywords of `Client.submit`."""

    name: Optional[str] = None
    files: Union[str, "os.PathLike[str]", None] = None
    engine: Optional[str] = None
    team: Optional[str] = None
    set: Union[Mapping[str, Any], Sequence[str]] = ()
    directory: Optional[str] = None
    document: Union[str, int, None] = None
    kwargs: Optional[Mapping[str, Any]] = None
    roles: Union[int, Mapping[str, Any], None] = None
    env: Optional[Mapping[str, str]] = None
    requirements: Sequence[str] = ()
    python: Optional[str] = None
    job: Optional[Mapping[str, Any]] = None


@dataclass
class Submission:
    """The fields of the request; `files`: directories that are uploaded as one."""

    body: Dict[str, Any]
    files: List[str] = field(default_factory=list)
    team: Optional[str] = None


def overrides_of(given: Union[Mapping[str, Any], Sequence[str]]) -> List[str]:
    """"PATH=VALUE" of a mapping, or as they are."""
    if not isinstance(given, Mapping):
        return [str(one) for one in given]
    return [f"{path}={value if isinstance(value, str) else json.dumps(value)}" for path, value in given.items()]


def find_command(purpose: str = "which converts descriptions of other systems") -> str:
    """The command `shoal`: beside this interpreter, where the wheel puts it, else in PATH."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "shoal")
    found = beside if os.access(beside, os.X_OK) else shutil.which("shoal")
    if found is None:
        raise SubmissionError(f"the command `shoal`, {purpose}, is neither beside this interpreter nor in PATH; install the wheel "
                              "`shoal`")
    return found


def is_foreign(text: str, several: bool = False) -> bool:
    """Whether a text is a description of another system, or, unless `several`, has several documents: not the content of one job
    file."""
    if text.startswith("#!") or re.search(r"^(apiVersion|kind)\s*:", text, re.M):
        return True
    if several and not text.lstrip().startswith(("{", "[")):
        return False
    if re.search(r"^---.*\n[\s\S]*\S[\s\S]*^---", text, re.M):
        return True
    if not text.lstrip().startswith(("{", "[")):
        return bool(re.search(r"^[^#\s].*\n---\s", text, re.M))
    try:
        parsed = json.loads(text)
    except ValueError:
        return False
    return not isinstance(parsed, dict) or any(key in parsed for key in ("apiVersion", "id", "apps", "groups"))


def convert(path: str, document: Union[str, int, None]) -> str:
    """The job file's text for a foreign description, by `shoal import`; its losses are logged as warnings."""
    command = [find_command(), "import", path, *([] if document is None else ["--document", str(document)])]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
    if done.returncode != 0:
        raise SubmissionError(done.stderr.strip().removeprefix("shoal: ") if sys.version_info >= (3, 9) else done.stderr)
    told = subprocess.run([*command, "--json"], stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
    if told.returncode == 0:
        for loss in json.loads(told.stdout).get("losses", []):
            if not loss.get("minor"):
                _LOG.warning("%s:%s: %s", path, loss.get("line"), loss.get("sentence"))
    return done.stdout


def files_of(text: str) -> Optional[str]:
    """The value of the field `files` of a job file in YAML: a line of the top level; None if there is none."""
    match = re.search(r"^files[ \t]*:[ \t]+(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\s#'\"&*!|>%@`{\[][^\n]*?)[ \t]*(?:[ \t]#[^\n]*)?\r?$",
                      text, re.M)
    if match is None:
        return None
    value = match.group(1)
    if value.startswith('"'):
        return str(json.loads(value))
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


def _read(path: str) -> str:
    try:
        with open(path, "rb") as f:
            data = f.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise SubmissionError(f"{path} has more than 1 MiB, which no job file has")
        return data.decode("utf-8")
    except OSError as error:
        raise SubmissionError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SubmissionError(f"{path} is not UTF-8 text, which every job file is") from None


def _of_file(path: str, options: Options, several: bool) -> Submission:
    text = _read(path)
    if is_foreign(text, several) or options.document is not None:
        text = convert(path, options.document)
    folder = os.path.dirname(os.path.abspath(path))
    made = Submission({"file": text, "directory": folder})
    shipped = files_of(text)
    if shipped is None and text.lstrip().startswith("{"):
        try:
            parsed = json.loads(text)
            shipped = parsed.get("files") if isinstance(parsed, dict) else None
        except ValueError:
            pass  # the server says what is wrong
    if isinstance(shipped, str) and shipped:
        made.files = [os.path.join(folder, os.path.expanduser(shipped))]
    if not re.search(r"^\W*name\W*:", text, re.M):
        made.body["set"] = ["name=" + (re.sub(r"[^\w.-]", "-", os.path.basename(path).rpartition(".")[0], flags=re.A) or "job")[:63]]
    return made


def _of_dict(source: Mapping[str, Any]) -> Submission:
    made = Submission({"file": _json_of(source), "directory": os.getcwd()})
    shipped = source.get("files")
    if isinstance(shipped, (str, os.PathLike)) and shipped:
        made.files = [os.path.join(os.getcwd(), os.path.expanduser(os.fspath(shipped)))]
    return made


def _json_of(source: Mapping[str, Any]) -> str:
    try:
        return json.dumps(source, default=_path_text)
    except (TypeError, ValueError) as error:
        raise SubmissionError(f"the job has a value that no job file can hold: {error}") from None


def _path_text(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(f"got {type(value).__name__}, expected text, numbers, lists and dicts")


@contextlib.contextmanager
def prepare(source: Any, args: Sequence[Any], options: Options, several: bool = False) -> Iterator[Submission]:
    """The submission; what a function needs lies in a temporary directory until the end. several: a file may have several
    documents."""
    if callable(source):
        task = source if isinstance(source, Function) else Function(source, {})
        options = Options(**{**task.options, **{k: v for k, v in vars(options).items() if v not in (None, ())}})
        with ship(task.function, args, options.kwargs or {}, options.requirements) as directory:
            made = _of_dict(_job_of(task.function, options))
            made.files = [*([os.fspath(options.files)] if options.files else []), directory]
            del made.body["directory"]
            yield _finish(made, options)
        return
    if args:
        raise TypeError("only a function has arguments; got them for a job file or a dict")
    for name in ("kwargs", "roles", "env", "requirements", "python", "job"):
        if getattr(options, name):
            raise TypeError(f"{name}=… belongs to a function; in a job file, use its fields, or set=…")
    made = _of_dict(source) if isinstance(source, Mapping) else _of_file(os.fspath(source), options, several)
    if options.files:
        made.files = [os.path.abspath(os.fspath(options.files))]
        made.body["set"] = [*made.body.get("set", []), "files=."]
    yield _finish(made, options)


def _job_of(function: Callable[..., Any], options: Options) -> Dict[str, Any]:
    roles = options.roles if options.roles is not None else 1
    name = re.sub(r"[^\w.-]", "-", getattr(function, "__name__", "function"), flags=re.A).strip("-") or "function"
    return {
        "name": name[:63], "files": ".", "command": [options.python or "python3", ".shoal-call/call.py"],
        "roles": dict(roles) if isinstance(roles, Mapping) else {"worker": roles},
        **({"env": dict(options.env)} if options.env else {}), **(options.job or {})}


def _finish(made: Submission, options: Options) -> Submission:
    made.team = options.team
    overrides = [*made.body.get("set", []), *overrides_of(options.set), *([f"name={options.name}"] if options.name else [])]
    if overrides:
        made.body["set"] = overrides
    if options.engine:
        made.body["engine"] = options.engine
    if options.directory:
        made.body["directory"] = options.directory
    return made
