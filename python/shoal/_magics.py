"""`%load_ext shoal` in a notebook of Python: `%%sql`, `%sql` and `%shoal` (docs/notebook.md)."""
from __future__ import annotations

import argparse
import atexit
import importlib
import re
import shlex
import signal
import subprocess
from typing import Any, Dict, List, Optional

from ._errors import ShoalError
from ._progress import Progress
from ._result import SqlResult
from ._sql import SqlSession
from ._submit import find_command

_ERROR: Any = importlib.import_module("IPython.core.error")
_DISPLAY: Any = importlib.import_module("IPython.display")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise _ERROR.UsageError(f"%%sql: {message}")


def _arguments(line: str) -> argparse.Namespace:
    parser = _Arguments(prog="%%sql", add_help=False)
    parser.add_argument("name", nargs="?", help="a variable that gets the result")
    parser.add_argument("-i", "--input", action="append", default=[], help="a variable with a table, under its name")
    parser.add_argument("-f", "--frame", action="store_true", help="the result as a pandas.DataFrame")
    parser.add_argument("-n", "--rows", type=int, default=1000, help="rows of the result")
    return parser.parse_args(shlex.split(line))


class ShoalMagics:
    """One session of SQL for the notebook."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._session: Optional[SqlSession] = None

    @property
    def session(self) -> SqlSession:
        if self._session is None:
            self._session = SqlSession()
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def sql(self, line: str, cell: str) -> Optional[Any]:
        """%%sql [NAME] [-i VARIABLE]… [-f] [-n ROWS]: runs the cell's statements. The result is shown, or kept as NAME."""
        given = _arguments(line)
        variables: Dict[str, Any] = self.shell.user_ns
        for name in given.input:
            if name not in variables:
                raise _ERROR.UsageError(f"%%sql -i {name}: there is no such variable")
            self.session.put(name, variables[name])
        progress = Progress(_show)
        result = self.session.run(cell, rows=given.rows, on_event=progress.take)
        for note in result.notes:
            print(note)
        value: Any = result.to_pandas() if given.frame else result
        if not given.name:
            return value if result.columns else None
        if not _NAME.match(given.name):
            raise _ERROR.UsageError(f"%%sql: got {given.name}, expected the name of a variable")
        variables[given.name] = value
        return None

    def sql_line(self, line: str) -> Optional[SqlResult]:
        """%sql STATEMENTS: runs them and returns the result."""
        result = self.session.run(line, on_event=Progress(_show).take)
        for note in result.notes:
            print(note)
        return result if result.columns else None

    def shoal(self, line: str) -> None:
        """%shoal run FILE, %shoal logs JOB, %shoal why JOB, …: any command of shoal. An interrupt is its Ctrl-C."""
        words: List[str] = shlex.split(line)
        if not words:
            raise _ERROR.UsageError("%shoal: expected a command, such as %shoal jobs")
        child = subprocess.Popen([find_command("which %shoal runs"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace", start_new_session=True)
        assert child.stdout is not None
        with child:
            while True:
                try:
                    text = child.stdout.readline()
                except KeyboardInterrupt:
                    child.send_signal(signal.SIGINT)
                    continue
                if not text:
                    break
                print(text, end="")
        if child.returncode != 0:
            raise ShoalError(f"shoal {words[0]} ended with the exit code {child.returncode}")


def _show(progress: Progress, first: bool) -> None:
    _DISPLAY.display(_DISPLAY.HTML(progress.html()), display_id=progress.display, update=not first)


def load(shell: Any) -> None:
    """Registers the magics; their session ends with the program."""
    magics = ShoalMagics(shell)
    shell.register_magic_function(magics.sql, magic_kind="cell", magic_name="sql")
    shell.register_magic_function(magics.sql_line, magic_kind="line", magic_name="sql")
    shell.register_magic_function(magics.shoal, magic_kind="line", magic_name="shoal")
    atexit.register(magics.close)
