"""How the jobs of a script go on, for notebooks: a line of text, and a line of HTML with a curve."""
from __future__ import annotations

import html
import os
import time
from typing import Any, Callable, List, Mapping, Optional, Tuple

_PAUSE = 0.25  # seconds between two pictures
_POINTS = 200  # of the curve
_WIDTH, _HEIGHT = 320, 60


class Progress:
    """Takes the events of a script; `show` is called when there is something new, with whether it is the first time."""

    def __init__(self, show: Optional[Callable[[Progress, bool], None]]) -> None:
        self._show = show
        self.display = os.urandom(8).hex()
        self._job, self._state = "", ""
        self._fraction: Optional[float] = None
        self._numbers: List[Tuple[str, float]] = []
        self._curve: List[float] = []
        self._shown = 0.0

    def take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("event")
        if kind not in ("submitted", "state", "progress", "done"):
            return
        if kind == "submitted":
            self._job, self._state = str(event.get("job", event.get("id", ""))), "submitted"
            self._fraction, self._numbers, self._curve = None, [], []
        elif kind in ("state", "done"):
            self._state = str(event.get("state", ""))
        else:
            self._take_progress(event)
        last = kind != "progress" and self._state in ("succeeded", "failed", "cancelled")
        now = time.monotonic()
        if self._show is not None and (last or now - self._shown >= _PAUSE):
            self._show(self, self._shown == 0.0)
            self._shown = now

    def _take_progress(self, event: Mapping[str, Any]) -> None:
        body = event.get("body")
        values = body if isinstance(body, dict) else event
        numbers = [(str(name), float(value)) for name, value in values.items()
                   if isinstance(value, (int, float)) and not isinstance(value, bool) and name not in ("id", "seq", "ask", "index", "time")]
        self._numbers = numbers[:8]
        known = dict(numbers)
        if "step" in known and known.get("total", 0) > 0:
            self._fraction = min(1.0, max(0.0, known["step"] / known["total"]))
        if "loss" in known:
            self._curve.append(known["loss"])
            del self._curve[:-10 * _POINTS]

    def text(self) -> str:
        done = "" if self._fraction is None else f" {100 * self._fraction:.0f} %"
        numbers = "".join(f", {name} {value:.6g}" for name, value in self._numbers)
        return f"{self._job}: {self._state}{done}{numbers}"

    def html(self) -> str:
        bar = "" if self._fraction is None else f'<progress value="{self._fraction:.4f}" max="1"></progress> '
        return f"<div>{bar}{html.escape(self.text())}{self._svg()}</div>"

    def _svg(self) -> str:
        step = max(1, len(self._curve) // _POINTS)
        values = self._curve[::step]
        if len(values) < 2:
            return ""
        low, high = min(values), max(values)
        span = (high - low) or 1.0
        points = " ".join(f"{i * _WIDTH / (len(values) - 1):.1f},{_HEIGHT - 2 - (value - low) / span * (_HEIGHT - 4):.1f}"
                          for i, value in enumerate(values))
        return (f'<br><svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="loss from {values[0]:.6g} to {values[-1]:.6g}">'
                f'<polyline points="{points}" fill="none" stroke="currentColor"/></svg>')
