"""The `files` of a job: the list of a directory as `shoal submit` makes it, and its upload by digests.

Exclusions follow docs/files.md; the list is that of docs/formats/files.md.
"""
from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import string
from typing import Any, Dict, List, NamedTuple, Optional, Pattern, Sequence, Set, Tuple

from ._errors import ApiError, SubmissionError
from ._http import Request, Transport

_REMEDY = "; name it in .shoalignore, or move it out of the directory"
_IGNORE_FILE, _MAX_IGNORE = ".shoalignore", 1 << 20
_OWN = (".git", ".hg", ".svn", "__pycache__")
_MAX_ENTRIES, _MAX_BYTES, _MAX_DEPTH = 100_000, 4 << 30, 64
_PIECE = 4 << 20
_READS = 3
_CLASSES = {
    "alnum": string.ascii_letters + string.digits, "alpha": string.ascii_letters, "blank": " \t", "digit": string.digits,
    "cntrl": "".join(map(chr, [*range(32), 127])), "lower": string.ascii_lowercase, "upper": string.ascii_uppercase,
    "punct": string.punctuation, "space": string.whitespace, "xdigit": string.hexdigits,
    "graph": "".join(map(chr, range(33, 127))), "print": "".join(map(chr, range(32, 127)))}


class _Rule(NamedTuple):
    base: str
    pattern: Optional[Pattern[bytes]]  # None matches nothing
    negated: bool
    directories_only: bool
    name_only: bool


class Snapshot(NamedTuple):
    """`entries`: of the manifest, by path. `sources`: the file of each digest, with its size."""

    entries: Dict[str, Dict[str, Any]]
    sources: Dict[str, Tuple[str, int]]


def _class_of(pattern: str, at: int) -> Tuple[Optional[str], int]:
    """The regular expression of the "[…]" whose content begins at `at`, and where it ends; None if it has no end."""
    negated = pattern[at:at + 1] in ("!", "^")
    at += negated
    members: Set[int] = set()
    first = True
    while first or pattern[at:at + 1] != "]":
        first = False
        named = re.match(r"\[:(\w*):\]", pattern[at:])
        if named:
            if named.group(1) not in _CLASSES:
                return None, at
            members.update(map(ord, _CLASSES[named.group(1)]))
            at += named.end()
            continue
        ends = []
        for _ in range(2):
            at += pattern[at:at + 1] == "\\"
            if at >= len(pattern):
                return None, at
            ends.append(ord(pattern[at]))
            at += 1
            if pattern[at:at + 1] != "-" or pattern[at + 1:at + 2] in ("", "]") or len(ends) == 2:
                break
            at += 1
        members.update(range(ends[0], ends[-1] + 1))
        if at >= len(pattern):
            return None, at
    chosen = sorted(set(range(256)) - members if negated else members)
    return "[" + "".join(f"\\x{c:02x}" for c in chosen) + "]" if chosen else "(?!)", at + 1


def translate(glob: bytes, by_parts: bool) -> Optional[Pattern[bytes]]:
    """A pattern of gitignore as a regular expression. by_parts: `*`, `?` and `[` do not match '/'."""
    pattern, at, out = glob.decode("latin-1"), 0, ""
    one = "[^/]" if by_parts else "."
    while at < len(pattern):
        c, begin = pattern[at], at
        at += 1
        if c == "*":
            while pattern[at:at + 1] == "*":
                at += 1
            rest = pattern[at:]
            whole = by_parts and at - begin >= 2 and (begin == 0 or pattern[begin - 1] == "/") and (
                not rest or rest.startswith(("/", "\\/")))
            if whole and rest.startswith("/"):
                out += "(?:.*/)?"
                at += 1
            else:
                out += ".*" if whole else one + "*"
        elif c == "?":
            out += one
        elif c == "[":
            text, at = _class_of(pattern, at)
            if text is None:
                return None
            out += ("(?!/)" if by_parts else "") + text
        else:
            if c == "\\":
                if at >= len(pattern):
                    return None
                c, at = pattern[at], at + 1
            out += re.escape(c)
    return re.compile(out.encode("latin-1"), re.DOTALL)


def parse_rules(text: bytes, base: str) -> List[_Rule]:
    rules = []
    for line in text[3:].split(b"\n") if text.startswith(b"\xef\xbb\xbf") else text.split(b"\n"):
        line = line[:-1] if line.endswith(b"\r") else line
        if not line or line.startswith(b"#"):
            continue
        kept = re.match(rb"(?:\\.|[^\\ ]| +(?=[^ ]))*\\?", line, re.DOTALL)
        line = kept.group(0) if kept else line
        negated = line.startswith(b"!")
        line = line[negated:]
        directories = line.endswith(b"/")
        line = line[:-1] if directories else line
        name_only = b"/" not in line
        line = line[1:] if line.startswith(b"/") else line
        if line:
            rules.append(_Rule(base, translate(line, not name_only), negated, directories, name_only))
    return rules


def is_ignored(rules: Sequence[_Rule], path: str, is_directory: bool) -> bool:
    for rule in reversed(rules):
        if rule.pattern is None or (rule.directories_only and not is_directory):
            continue
        if rule.base and not path.startswith(rule.base + "/"):
            continue
        below = path[len(rule.base) + 1:] if rule.base else path
        if rule.pattern.fullmatch(os.fsencode(below.rpartition("/")[2] if rule.name_only else below)):
            return not rule.negated
    return False


class _Walk:
    def __init__(self, root: str) -> None:
        self.root, self.bytes = root, 0
        self.snapshot = Snapshot({}, {})

    def directory(self, path: str, rules: List[_Rule], depth: int) -> None:
        full = os.path.join(self.root, path)
        try:
            with open(os.path.join(full, _IGNORE_FILE), "rb") as f:
                text = f.read(_MAX_IGNORE + 1)
            if len(text) > _MAX_IGNORE:
                raise SubmissionError(f"{os.path.join(full, _IGNORE_FILE)} has more than 1 MiB; make it shorter")
            rules = rules + parse_rules(text, path)
        except FileNotFoundError:
            pass
        for name in sorted(os.listdir(full)):
            self.entry(f"{path}/{name}" if path else name, name, rules, depth)

    def entry(self, path: str, name: str, rules: List[_Rule], depth: int) -> None:
        full = os.path.join(self.root, path)
        try:
            info = os.lstat(full)
        except FileNotFoundError:
            return  # removed since the directory was read
        is_directory = stat.S_ISDIR(info.st_mode)
        left_out = is_directory and (name in _OWN or os.path.exists(os.path.join(full, "pyvenv.cfg")))
        if left_out or is_ignored(rules, path, is_directory):
            return
        self.check(path, full, depth)
        if is_directory:
            self.snapshot.entries[path] = {"path": path, "kind": "dir"}
            self.directory(path, rules, depth + 1)
        elif stat.S_ISLNK(info.st_mode):
            self.snapshot.entries[path] = {"path": path, "kind": "link", "target": self.target(path, full)}
        elif stat.S_ISREG(info.st_mode):
            self.snapshot.entries[path] = self.file(path, full)
        else:
            raise SubmissionError(f"{full} cannot be shipped: it is a device, a pipe or a socket{_REMEDY}")

    def check(self, path: str, full: str, depth: int) -> None:
        wrong = ""
        if any("\ud800" <= c <= "\udfff" for c in path):
            wrong = "its name is not UTF-8"
        elif re.search(r"[\x00-\x1f\x7f]", path):
            wrong = "its name has control characters"
        elif depth > _MAX_DEPTH or len(os.fsencode(path)) > 1024:
            wrong = f"it is more than {_MAX_DEPTH} directories deep or its path has more than 1024 bytes"
        elif len(self.snapshot.entries) >= _MAX_ENTRIES:
            wrong = f"the directory has more than {_MAX_ENTRIES} files"
        if wrong:
            raise SubmissionError(f"{full!r} cannot be shipped: {wrong}{_REMEDY}")

    def target(self, path: str, full: str) -> str:
        """A link's target relative to its directory, with ".." only at the beginning."""
        target, parent = os.readlink(full), os.path.realpath(os.path.dirname(full))
        real = os.path.realpath(os.path.join(parent, target))
        if real != self.root and not real.startswith(os.path.join(self.root, "")):
            raise SubmissionError(f"{full} cannot be shipped: this link leads to {target}, out of the directory{_REMEDY}")
        clean = re.fullmatch(r"(\.\./)*(?!\.\.?(/|$))[^/]+(/(?!\.\.?(/|$))[^/]+)*", target)
        good = clean and target.split("/").count("..") <= path.count("/")
        return target if good else os.path.relpath(real, parent)

    def file(self, path: str, full: str) -> Dict[str, Any]:
        for _ in range(_READS):
            digest, size = hashlib.sha256(), 0
            with open(full, "rb") as f:
                before = os.fstat(f.fileno())
                if self.bytes + before.st_size > _MAX_BYTES:
                    raise SubmissionError(f"{self.root} cannot be shipped: with {full} it is larger than 4 GiB; name data and results in "
                                          ".shoalignore and let the tasks read them where they are")
                for piece in iter(lambda: f.read(1 << 20), b""):
                    digest.update(piece)
                    size += len(piece)
                after = os.fstat(f.fileno())
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and size == before.st_size:
                self.bytes += size
                self.snapshot.sources[digest.hexdigest()] = (full, size)
                return {"path": path, "kind": "file", "size": size, "sha256": digest.hexdigest(),
                        "executable": bool(before.st_mode & stat.S_IXUSR)}
        raise SubmissionError(f"{full} was written to each of the {_READS} times that it was read{_REMEDY}")


def take_snapshot(directory: str) -> Snapshot:
    """Lists and hashes a directory. SubmissionError names what cannot be shipped. O(bytes)."""
    root = os.path.realpath(directory)
    if not os.path.isdir(root):
        raise SubmissionError(f"files: got {directory}, expected a directory that exists")
    walk = _Walk(root)
    try:
        walk.directory("", [], 1)
    except OSError as error:
        raise SubmissionError(f"files: {error.filename or root} cannot be read: {error.strerror}") from None
    return walk.snapshot


def upload(transport: Transport, directories: Sequence[str], team: Optional[str]) -> str:
    """Uploads what the server lacks of the directories, which become one, and returns the manifest."""
    entries: Dict[str, Dict[str, Any]] = {}
    sources: Dict[str, Tuple[str, int]] = {}
    for directory in directories:
        snapshot = take_snapshot(directory)
        entries.update(snapshot.entries)
        sources.update(snapshot.sources)
    if sources:
        body: Dict[str, Any] = {"digests": sorted(sources), **({"team": team} if team else {})}
        missing = transport.post("/files/missing", body, True).get("missing", [])
        for one in missing:
            if one.get("sha256") in sources:
                _send(transport, one["sha256"], sources[one["sha256"]], int(one.get("received", 0)), team)
    ordered = sorted(entries.values(), key=lambda entry: os.fsencode(str(entry["path"])))
    return json.dumps({"version": 1, "entries": ordered}, separators=(",", ":"))


def _send(transport: Transport, sha256: str, source: Tuple[str, int], received: int, team: Optional[str]) -> None:
    path, size = source
    at = received if received <= size else 0
    with open(path, "rb") as f:
        while True:
            f.seek(at)
            piece = f.read(min(_PIECE, size - at))
            if len(piece) < min(_PIECE, size - at):
                raise SubmissionError(f"{path} became shorter while it was uploaded; submit again")
            query = {"team": team, "offset": at, "size": size}
            try:
                status = transport.call(Request("PUT", f"/files/{sha256}", query, piece,
                                                {"Content-Type": "application/octet-stream"})).json()
            except ApiError as error:
                if error.status != 409:
                    raise
                status = transport.get(f"/files/{sha256}", {"team": team})  # a piece whose answer was lost has arrived
            if status.get("complete"):
                return
            at = int(status.get("received", 0))
            if not 0 <= at <= size:
                raise SubmissionError(f"{path}: the server has more of this content than there is; submit again")
