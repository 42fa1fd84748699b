"""Names and words that have no place here: file names that say nothing, sleeps in tests, output whose errors are ignored,
paths of one machine."""
import os
import re

from files import Finding, is_cpp, is_test, read

_EMPTY_NAMES = {"util", "utils", "common", "misc", "helper", "helpers", "structs"}
_SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(")
_IGNORED = re.compile(r"\(void\)\s*(?:PrintOut|PrintResult)\b|\(void\)\s*WriteAll\(STDOUT_FILENO")
_LOOP = re.compile(r"^\s*(?:for|while|do)\b", re.M)
# Comments name the thing that acts: "no server", "the next command", "another process".
_VAGUE = re.compile(r"//.*\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever)\b")
_HOME = re.compile(r"(?<![\w.~/-])/(?:(?:home|Users)/\w{3,}|root/\w)")
_BINARY = (".png", ".ico", ".gz", ".zst", ".xz", ".bin", ".woff2")


def _check_words(root, path, own_places):
    findings, lines = [], read(root, path).splitlines()
    for number, line in enumerate(lines, 1):
        # A pause between two looks at a condition is no sleep: it stands in a loop, or says `poll`.
        looks = "poll" in line or _LOOP.search("\n".join(lines[max(0, number - 6):number]))
        if is_test(path) and _SLEEP.search(line) and not looks:
            findings.append(Finding("sleep", path, number, "a test sleeps: inject a clock, or wait for a condition with a "
                                                           "deadline"))
        if is_cpp(path) and _IGNORED.search(line):
            findings.append(Finding("ignored-output", path, number, "an error in writing standard output is ignored: a full "
                                    "disk would look like success; return it, or its exit code (cli/terminal/report.h)"))
        if is_cpp(path) and not is_test(path) and _VAGUE.search(line):
            findings.append(Finding("vague-subject", path, number, "a comment speaks of nobody or somebody: name the process, "
                                    "server, task or user that is meant"))
        if _HOME.search(line) or any(place.search(line) for place in own_places):
            findings.append(Finding("machine-path", path, number, "an absolute path of one machine"))
    return findings


def _own_places(root):
    """Patterns of the places of this very checkout, which would be right on this machine only.

    A name right under / says too little: /shoal is also a control group, and a word of other paths."""
    places = {os.path.abspath(root), os.path.dirname(os.path.abspath(root)), os.path.expanduser("~")}
    return [re.compile(rf"(?<![\w.]){re.escape(p)}(?![\w-])") for p in places
            if p.count("/") > 1 and p != "/var/tmp"]


def check(root, paths):
    """All findings about names and words among `paths`."""
    findings, own_places = [], _own_places(root)
    for path in paths:
        stem = os.path.basename(path).split(".")[0].lower()
        if stem in _EMPTY_NAMES or re.sub(r"_test$", "", stem) in _EMPTY_NAMES:
            findings.append(Finding("file-name", path, 1, "the name says nothing: name the file after what it holds"))
        if not path.endswith(_BINARY) and not path.startswith("examples/text/"):
            findings += _check_words(root, path, own_places)
    return findings
