"""Outputs of a job into a directory of this machine."""
from __future__ import annotations

import os
import time
from typing import BinaryIO, List, Optional

from ._errors import ShoalError
from ._http import BROKEN, Backoff, Request, Transport, quoted
from ._records import Output

_SILENCE = 45.0


def download(transport: Transport, target: str, outputs: List[Output], to: str, task: Optional[str]) -> List[str]:
    """Copies the outputs to TO/TASK.ATTEMPT/PATH. A file gets its name when it is whole."""
    root = os.path.realpath(to)
    made = []
    for one in outputs:
        if one.link or task not in (None, one.task, one.task.rpartition("-")[0]):
            continue
        path = _place(root, one)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):
            raise ShoalError(f"{os.path.dirname(path)} is reached by a link out of {root}; download to an empty directory")
        partial = path + ".part"
        with open(partial, "wb") as f:
            _copy(transport, f"{target}/{quoted(one.task)}/{one.attempt}", one, f)
        os.replace(partial, path)
        made.append(path)
    return made


def _place(root: str, one: Output) -> str:
    """Where a file goes. A server's path may not lead out of the directory."""
    parts = [f"{one.task}.{one.attempt}", *one.path.split("/")]
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or "/" in parts[0]:
        raise ShoalError(f"the server's list has the output {one.path!r}, whose path leads out of the directory")
    return os.path.join(root, *parts)


def _copy(transport: Transport, target: str, one: Output, file: BinaryIO) -> None:
    at, backoff = 0, Backoff(transport.retry)
    while at < one.bytes:
        broken = None
        try:
            opened = transport.open(Request("GET", target, {"path": one.path, "offset": at}), _SILENCE)
            try:
                while piece := opened.read():
                    file.write(piece)
                    at += len(piece)
                    backoff.revive()
            finally:
                opened.close()
        except BROKEN as error:
            broken = error.sentence
        if at < one.bytes:
            pause = backoff.next()
            if pause is None:
                raise broken or ShoalError(f"{one.path} has become shorter than {one.bytes} bytes; download again")
            time.sleep(pause)
