"""Which files the lint looks at, and what a finding is. Used by every rule."""
import os
import subprocess

SKIPPED = ("build", ".git", ".cache")


class Finding:
    """One broken rule. `key` is what a waiver names: the path, or path:function."""

    def __init__(self, rule, path, line, message, key=None):
        self.rule, self.path, self.line, self.message = rule, path, line, message
        self.key = key or path

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


def all_files(root):
    """Paths below root, relative, sorted: what git tracks or would track; every file where there is no git."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        names = {os.fsdecode(p) for p in out.split(b"\0") if p}
    except (OSError, subprocess.CalledProcessError):
        names = set()
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in SKIPPED]
            names.update(os.path.relpath(os.path.join(folder, f), root) for f in files)
    return sorted(p for p in names if os.path.isfile(os.path.join(root, p)))


def read(root, path):
    """The file's text; bytes that are not UTF-8 are replaced."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def is_cpp(path):
    return path.endswith((".cc", ".h"))


def is_test(path):
    return path.startswith("tests/") or path.endswith(("_test.cc", "_bench.cc", "_fuzz.cc", "_test.py")) or \
        os.path.basename(path).startswith("test_")


def table(root, name):
    """The rows of a table of tools/lint: each line without comment, split at white space, with its line number."""
    rows = []
    for number, line in enumerate(read(root, f"tools/lint/{name}").splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            rows.append((number, line.split()))
    return rows
