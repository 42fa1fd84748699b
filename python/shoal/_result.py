"""What a script of SQL has shown: `shoal.SqlResult`."""
from __future__ import annotations

import datetime
import html
import importlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from ._errors import ShoalError

_SHOWN = 20  # rows of a result in a shell or a notebook
_CELL = 60  # characters

_NUMBERS: Dict[str, Callable[[str], Any]] = {"integer": int, "float": float, "bool": lambda text: {"true": True, "false": False}[text.lower()]}
_TIMES: Dict[str, Callable[[str], Any]] = {
    "DATE": datetime.date.fromisoformat,
    "TIMESTAMP": datetime.datetime.fromisoformat,
    "TIMESTAMP_S": datetime.datetime.fromisoformat,
    "TIMESTAMP_MS": datetime.datetime.fromisoformat,
    "TIME": datetime.time.fromisoformat,
}


def _converted(values: List[Any], kind: str) -> List[Any]:
    """The texts of a column as what they stand for; as they are if one of them does not."""
    convert = _NUMBERS.get(kind) or _TIMES.get(kind)
    if convert is None or not any(isinstance(value, str) for value in values):
        return values
    try:
        return [convert(value) if isinstance(value, str) else value for value in values]
    except (ValueError, KeyError):
        return values


class SqlResult:
    """Rows of the last statement that shows any, with what happened on the way.

    columns: names. types: of each column, "integer", "float", "text", "DATE", …; empty if it is not known. rows: lists of values; numbers
    and times are Python's own. more: there are rows after these. notes: sentences such as "saved 12 rows to …". jobs: the IDs of the jobs
    that the statements ran.
    """

    def __init__(self, columns: Sequence[str] = (), rows: Sequence[Sequence[Any]] = (), types: Sequence[str] = (), more: bool = False) -> None:
        self.columns: List[str] = [str(name) for name in columns]
        self.types: List[str] = [str(kind) for kind in types] if len(types) == len(columns) else [""] * len(self.columns)
        self.more = more
        self.notes: List[str] = []
        self.jobs: List[str] = []
        values = [_converted([row[i] if i < len(row) else None for row in rows], kind) for i, kind in enumerate(self.types)]
        self.rows: List[List[Any]] = [[column[i] for column in values] for i in range(len(rows))]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[List[Any]]:
        return iter(self.rows)

    def column(self, name: str) -> List[Any]:
        """The values of a column. KeyError without it."""
        if name not in self.columns:
            raise KeyError(name)
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def to_dicts(self) -> List[Dict[str, Any]]:
        return [dict(zip(self.columns, row)) for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; needs pandas. Columns of times have pandas' own type."""
        pandas = _package("pandas")
        frame = pandas.DataFrame(self.rows, columns=self.columns)
        for at, kind in enumerate(self.types):
            if kind.startswith(("DATE", "TIMESTAMP")):
                frame.isetitem(at, pandas.to_datetime(frame.iloc[:, at], errors="coerce", utc=kind == "TIMESTAMP WITH TIME ZONE"))
        return frame

    def to_arrow(self) -> Any:
        """A pyarrow.Table; needs pyarrow. Columns whose values have no common type become texts."""
        arrow = _package("pyarrow")
        arrays = []
        for at in range(len(self.columns)):
            values = [row[at] for row in self.rows]
            try:
                arrays.append(arrow.array(values))
            except (arrow.ArrowInvalid, arrow.ArrowTypeError, arrow.ArrowNotImplementedError):
                arrays.append(arrow.array([None if value is None else str(value) for value in values]))
        return arrow.Table.from_arrays(arrays, names=self.columns)

    def __repr__(self) -> str:
        if not self.columns:
            return f"<shoal.SqlResult: {'; '.join(self.notes) or 'no rows'}>"
        shown = [self.columns] + [[_text(value) for value in row] for row in self.rows[:_SHOWN]]
        widths = [max(len(row[i]) for row in shown) for i in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in shown]
        return "\n".join([*lines, self._count()])

    def _repr_html_(self) -> str:
        """A table for notebooks; all values are escaped."""
        if not self.columns:
            return ""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_text(value))}</td>" for value in row) + "</tr>" for row in self.rows[:_SHOWN])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(self._count())}</p>"

    def _count(self) -> str:
        count = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        if self.more:
            count = f"the first {count}; rows=… gives more"
        return f"({count})" if len(self.rows) <= _SHOWN else f"({count}, {_SHOWN} of them shown)"


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    text = "".join(c if c.isprintable() else " " for c in text[:_CELL + 1])
    return text if len(text) <= _CELL else text[:_CELL] + "…"


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ShoalError(f"this needs the package {name}, which is not installed; `pip install {name}`") from None


def result_of(event: Optional[Mapping[str, Any]]) -> SqlResult:
    """The result of an event `rows`; None: without rows."""
    if event is None:
        return SqlResult()
    columns, rows, types = (event.get(name) for name in ("columns", "rows", "types"))
    if not isinstance(columns, list) or not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ShoalError("the session's answer has no columns and rows")
    return SqlResult(columns, rows, types if isinstance(types, list) else (), event.get("more") is True)
