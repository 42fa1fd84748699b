"""Rule locks: src/ uses the mutexes of base/mutex.h, whose use clang checks; and that check, for `script/lint --locks`."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

import files

COMPILER = "clang++-16"  # 14 does not compile all of libstdc++ 12
PRESET = "release"       # groups several files into one, so that the headers are read once
PLAIN = re.compile(r"\bstd::(?:mutex|condition_variable)\b(?!_any)")
LEAF = "src/base/mutex.h"
WARNING = re.compile(r"^(?:\.\./)*(?P<path>[^\s:]+):(?P<line>\d+):\d+: (?:warning|error|fatal error): (?P<text>.*)$")


def check(root, paths):
    """The cheap half: no plain mutex in src/, unless the line or the one above says `not checked:` and why."""
    found = []
    for path in paths:
        if not path.startswith("src/") or not files.is_cpp(path) or files.is_test(path) or path == LEAF:
            continue
        lines = files.read(root, path).split("\n")
        for number, line in enumerate(lines, 1):
            if PLAIN.search(line.split("//")[0]) and "not checked:" not in line + lines[number - 2]:
                found.append(files.Finding("locks", path, number, "got a mutex of the standard library, expected Mutex, MutexLock or CondVar of "
                                           "base/mutex.h; where these do not serve, say `// not checked:` and why"))
    return found


def _members(root, unit):
    """A compiled file, and the files that a group includes."""
    with open(unit, encoding="utf-8") as file:
        return [unit] + [os.path.join(root, "src", path) for path in re.findall(r'^#include "([^"]+\.cc)"', file.read(), re.M)]


def _has_locks(root, unit):
    for path in _members(root, unit):
        for one in (path, path[:-3] + ".h"):
            if os.path.isfile(one):
                with open(one, encoding="utf-8") as file:
                    if re.search(r"\bMutexLock\b|GUARDED_BY|REQUIRES\(", file.read()):
                        return True
    return False


def _command(entry):
    """The compiler's own, without its warnings, its optimisation and its precompiled header, which is gcc's."""
    kept, skip = [COMPILER, "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-fno-caret-diagnostics"], False
    words = shlex.split(entry["command"])
    for word in words[next(i for i, word in enumerate(words) if word.startswith(("-D", "-I", "-isystem"))):]:
        if skip:
            skip = False
        elif word in ("-o", "-include"):
            skip = True
        elif not word.startswith(("-W", "-O", "-g", "-fpch", "-Winvalid")) and word != "-c":
            kept.append(word)
    return kept


def check_with_clang(root):
    """Findings of clang's -Wthread-safety in every file of src/ that has locks; the preset must have been configured."""
    with open(os.path.join(root, "build", PRESET, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    entries = [entry for entry in entries if ("/src/" in entry["file"] or "/unity/" in entry["file"]) and _has_locks(root, entry["file"])]

    def run(entry):
        return entry, subprocess.run(_command(entry), cwd=entry["directory"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     text=True, check=False)

    found, known = [], set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, done in pool.map(run, entries):
            findings = [match for match in map(WARNING.match, done.stderr.split("\n")) if match]
            for match in findings:
                path = os.path.relpath(os.path.join(entry["directory"], match["path"]), root) if not match["path"].startswith("src/") else match["path"]
                if (path, match["line"], match["text"]) not in known:
                    known.add((path, match["line"], match["text"]))
                    found.append(files.Finding("locks", path, int(match["line"]), match["text"]))
            if done.returncode != 0 and not findings:
                found.append(files.Finding("locks", os.path.relpath(entry["file"], root), 1, done.stderr.strip()[-300:]))
    print(f"locks: {COMPILER} read {len(entries)} files", file=sys.stderr)
    return found
