"""The notebook kernel of SQL: `python -m shoal.kernel -f FILE`, which Jupyter starts for notebooks of "Shoal SQL" (docs/notebook.md).

It needs the package ipykernel, as every kernel of Python does. Statements run at the server of SHOAL_SERVER or `shoal login`, else on this
machine.
"""
from __future__ import annotations

import importlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._errors import ShoalError
from ._progress import Progress
from ._result import SqlResult, result_of
from ._sql import SqlSession

_VERSION = "1"
_KERNEL: Any = importlib.import_module("ipykernel.kernelbase")
_APP: Any = importlib.import_module("ipykernel.kernelapp")


class SqlKernel(_KERNEL.Kernel):  # type: ignore[misc]
    """Cells are scripts of one session."""

    implementation = "shoal"
    implementation_version = _VERSION
    language_info = {"name": "sql", "mimetype": "text/x-sql", "file_extension": ".sql", "pygments_lexer": "sql", "codemirror_mode": "sql"}
    banner = "Shoal SQL: statements end with a semicolon (docs/sql.md)"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._session = SqlSession()

    def do_execute(self, code: str, silent: bool, store_history: bool = True, user_expressions: Optional[Mapping[str, Any]] = None,
                   allow_stdin: bool = False, *, cell_meta: Any = None, cell_id: Any = None) -> Dict[str, Any]:
        if not code.strip():
            return self._ok()
        progress = Progress(None if silent else self._show_progress)
        rows: List[Mapping[str, Any]] = []

        def on_event(event: Mapping[str, Any]) -> None:
            kind = event.get("event")
            if kind == "rows":
                rows.append(event)
            elif kind == "note" and "text" in event and not silent:
                self._stream("stdout", f"{event['text']}\n")
            progress.take(event)

        try:
            self._session.run(code, on_event=on_event)
        except KeyboardInterrupt:
            return self._failed("KeyboardInterrupt", "the statements were stopped", silent)
        except ShoalError as error:
            self._show_all(rows, silent)
            return self._failed(type(error).__name__, str(error), silent)
        self._show_all(rows, silent)
        return self._ok()

    def do_complete(self, code: str, cursor_pos: int) -> Dict[str, Any]:
        begin, candidates = self._asked(code, cursor_pos)
        return {"status": "ok", "matches": candidates, "cursor_start": begin, "cursor_end": cursor_pos, "metadata": {}}

    def do_inspect(self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()) -> Dict[str, Any]:
        try:
            text = self._session.inspect(code, cursor_pos)
        except ShoalError:
            text = ""
        return {"status": "ok", "found": bool(text), "data": {"text/plain": text} if text else {}, "metadata": {}}

    def do_is_complete(self, code: str) -> Dict[str, Any]:
        text = code.strip()
        whole = not text or text.endswith(";") or (text.startswith("!") and "\n" not in text)
        return {"status": "complete"} if whole else {"status": "incomplete", "indent": ""}

    def do_shutdown(self, restart: bool) -> Dict[str, Any]:
        self._session.close()
        return {"status": "ok", "restart": restart}

    def _asked(self, code: str, cursor: int) -> Tuple[int, List[str]]:
        try:
            return self._session.complete(code, cursor)
        except ShoalError:
            return cursor, []

    def _ok(self) -> Dict[str, Any]:
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def _failed(self, name: str, sentence: str, silent: bool) -> Dict[str, Any]:
        content = {"ename": name, "evalue": sentence, "traceback": sentence.splitlines()}
        if not silent:
            self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def _stream(self, name: str, text: str) -> None:
        self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})

    def _show_all(self, events: List[Mapping[str, Any]], silent: bool) -> None:
        """All but the last as displays, the last as the cell's result."""
        if silent:
            return
        for at, event in enumerate(events):
            result = result_of(event)
            content: Dict[str, Any] = {"data": _data(result), "metadata": {}}
            if at + 1 < len(events):
                self.send_response(self.iopub_socket, "display_data", content)
            else:
                self.send_response(self.iopub_socket, "execute_result", {**content, "execution_count": self.execution_count})

    def _show_progress(self, progress: Progress, first: bool) -> None:
        content = {"data": {"text/html": progress.html(), "text/plain": progress.text()}, "metadata": {},
                   "transient": {"display_id": progress.display}}
        self.send_response(self.iopub_socket, "display_data" if first else "update_display_data", content)


def _data(result: SqlResult) -> Dict[str, str]:
    return {"text/plain": repr(result), "text/html": result._repr_html_()}  # pylint: disable=protected-access


if __name__ == "__main__":
    _APP.IPKernelApp.launch_instance(kernel_class=SqlKernel)
