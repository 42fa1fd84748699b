"""Limits on how much one folder and one class may hold."""
import os
import re

import cpp
from files import Finding, is_cpp, is_test, read

FOLDER_FILES, CLASS_METHODS, CLASS_FIELDS = 40, 40, 25

_CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:\[\[[^\]]*\]\]\s*)?([A-Za-z_]\w*)(?:\s+final)?\s*(?::[^;{(]*)?\{")
_ACCESS = re.compile(r"^(?:(?:public|private|protected)\s*:\s*)+")
_NO_MEMBER = re.compile(r"^(?:using|typedef|friend|static_assert|enum|template\s*<[^>]*>\s*(?:class|struct|using))\b")


class Class:
    """One class with a body: its name, the line it begins in, how many methods and fields it declares."""

    def __init__(self, name, line):
        self.name, self.line, self.methods, self.fields = name, line, 0, 0


def _closing(code, start):
    """The position of the brace that closes the one at `start`, or the end of the text."""
    depth = 0
    for match in re.finditer(r"[{}]", code[start:]):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return start + match.start()
    return len(code)


def _count_member(cls, declaration, has_body):
    text = _ACCESS.sub("", " ".join(declaration.split())).strip()
    if not text or _NO_MEMBER.match(text) or re.match(r"^(?:class|struct|union)\b[^(]*$", text):
        return
    # Template arguments may hold round brackets (std::function<void(int)>) and commas: they are no parameters.
    previous = None
    while previous != text:
        previous, text = text, re.sub(r"<[^<>]*>", "", text)
    before_value = text.split("=")[0] if "operator" not in text else text
    if "(" in before_value:
        cls.methods += 1
    elif not has_body or re.search(r"\w$", text):
        cls.fields += before_value.count(",") + 1


def _read_body(cls, body):
    position = head = 0
    while position < len(body):
        c = body[position]
        if c == ";":
            _count_member(cls, body[head:position], False)
            head = position + 1
        elif c == "{":
            closing = _closing(body, position)
            declaration = body[head:position]
            after = body[closing + 1:].lstrip()
            # A value in braces, or a constructor's initialiser in braces, belongs to the member that goes on after it.
            if after.startswith((";", ",", "{")) and not _CLASS.search(declaration + "{"):
                body = body[:position] + " " * (closing + 1 - position) + body[closing + 1:]
            else:
                _count_member(cls, declaration, True)
                head = closing + 1
            position = closing
        position += 1


def classes(text):
    """All classes of a file that have a body."""
    code = cpp.blank(text)
    found = []
    for match in _CLASS.finditer(code):
        if re.search(r"\benum\s*$", code[:match.start()]):
            continue
        cls = Class(match.group(1), code.count("\n", 0, match.start()) + 1)
        start = match.end() - 1
        _read_body(cls, code[start + 1:_closing(code, start)])
        found.append(cls)
    return found


def _check_folders(paths):
    counts = {}
    for path in paths:
        if path.startswith(("src/", "include/", "python/")):
            counts.setdefault(os.path.dirname(path), []).append(path)
    return [Finding("folder-files", folder, 1, f"{len(inside)} files in one folder, at most {FOLDER_FILES} are allowed: "
                    "group them by responsibility") for folder, inside in sorted(counts.items()) if len(inside) > FOLDER_FILES]


def check(root, paths):
    """All findings about folders and classes among `paths`."""
    findings = _check_folders(paths)
    for path in paths:
        if not is_cpp(path) or is_test(path):
            continue
        for cls in classes(read(root, path)):
            key = f"{path}:{cls.name}"
            if cls.methods > CLASS_METHODS:
                findings.append(Finding("class-methods", path, cls.line, f"{cls.name} has {cls.methods} methods, at most "
                                        f"{CLASS_METHODS} are allowed", key))
            if cls.fields > CLASS_FIELDS:
                findings.append(Finding("class-fields", path, cls.line, f"{cls.name} has {cls.fields} fields, at most "
                                        f"{CLASS_FIELDS} are allowed", key))
    return findings
