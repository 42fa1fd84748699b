"""The commands that documents and the examples of each --help show, and the output that documents show below them.

In a page a command is a line of a shell block: an indented one, or a fenced one without a language, whose first line begins with a
program of PROGRAMS. Behind two blanks or ` #` follows what is said about it. In a block whose commands begin with `$ `, the other
lines are the output of the command above them (`matches` says how that is compared).
In a help text a command is a line of the section "Examples".
"""
import glob
import os
import re

PROGRAMS = ("shoal", "build/release/shoal", "script/", "examples/", "cmake", "ninja", "docker", "helm", "kubectl", "export", "install",
            "dig", "bible", "source")
# Indented blocks that are no commands, by page and first line.
NOT_SHELL = {
    ("docs/engines/marathon.md", "pending: waits in Marathon's queue: worker no offer of Mesos fits: not enough memory (3 of 3 offers)"),
    ("docs/engines/slurm.md", "pending: waits in Slurm's queue (job 4711): Resources, what it asks for is in use by other jobs; "
     "expected to start at 2026-…"),
    ("docs/files.md", "env: {SHOAL_CACHE: /cache}"),
    ("docs/formats/examples.md", "LABEL NUMBER:VALUE NUMBER:VALUE … # comment"),
    ("docs/formats/factors.md", "m = bias + Σᵢ wᵢ xᵢ + Σ_{i<j} ⟨vᵢ, vⱼ⟩ xᵢ xⱼ        (Rendle 2010, equation 1)"),
    ("docs/formats/factors.md", "m = bias + Σᵢ wᵢ xᵢ + Σ_{i<j} ⟨v_{i,f(j)}, v_{j,f(i)}⟩ xᵢ xⱼ"),
    ("docs/formats/horovod.md", "PUT /global/1 HTTP/1.1\\r\\nHost: 127.0.0.1:4001\\r\\nContent-Length: 2\\r\\n\\r\\nhi"),
    ("docs/formats/log-segments.md", "[shoal: N bytes of this log could not be stored]"),
    ("docs/formats/rabit.md", "99ff0000  ffffffff  ffffffff  01000000 30  05000000 7374617274"),
}


class Command:
    def __init__(self, page, line, text):
        self.page, self.line, self.text, self.output = page, line, text, []

    def __repr__(self):
        return f"{self.page}:{self.line}: {self.text}"


def pages(root):
    """README, CONTRIBUTING, docs and the examples' READMEs; not decisions and recorded measurements, which are of their time."""
    found = [os.path.join(root, "README.md"), os.path.join(root, "CONTRIBUTING.md")]
    found += glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True)
    found += glob.glob(os.path.join(root, "examples", "**", "README*"), recursive=True)
    names = sorted(os.path.relpath(page, root) for page in found)
    return [name for name in names if not name.startswith(("docs/adr/", "docs/bench/"))]


def blocks(text):
    """(language, number of the first line, lines) of each block; the language of an indented one is "indented"."""
    language, first, lines, blank = None, 0, [], True
    for number, line in enumerate([*text.split("\n"), ""], 1):
        fence = re.match(r"```(\w*)", line)
        if language in (None, "indented") and (fence or not line.startswith("    ")):
            if lines:
                yield "indented", first, lines
            language, first, lines = (fence.group(1), number + 1, []) if fence else (None, 0, [])
        elif fence:
            yield language, first, lines
            language, lines = None, []
        elif language is None and blank:
            language, first, lines = "indented", number, [line[4:]]
        elif language is not None:
            lines.append(line[4:] if language == "indented" else line)
        blank = not line.strip()


def is_shell(language, lines):
    first = lines[0].removeprefix("$ ")
    return language in ("indented", "", "sh", "bash", "console") and re.match(
        r"(%s)" % "|".join(re.escape(p) if p.endswith("/") else re.escape(p) + r"\b" for p in PROGRAMS), first) is not None


def command_of(line):
    """The line without what is said about the command: behind two blanks or ` #`, outside quotes."""
    quote = ""
    for i, c in enumerate(line):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif line.startswith(("  ", " #"), i):
            return line[:i]
    return line.rstrip()


def of_page(root, page):
    """The commands of a page, in their order."""
    commands = []
    with open(os.path.join(root, page), encoding="utf-8") as text:
        found = list(blocks(text.read()))
    for language, first, lines in found:
        if not is_shell(language, lines):
            continue
        shows_output = lines[0].startswith("$ ")
        command = None
        for number, line in enumerate(lines, first):
            if not shows_output or line.startswith("$ "):
                command = Command(page, number, command_of(line.removeprefix("$ ")))
                if command.text and not command.text.startswith("…"):
                    commands.append(command)
            else:
                command.output.append(line)
    return commands


def unknown_blocks(root, page):
    """First lines of indented blocks that are neither commands nor in NOT_SHELL."""
    with open(os.path.join(root, page), encoding="utf-8") as text:
        for language, first, lines in blocks(text.read()):
            if language == "indented" and not is_shell(language, lines) and (page, lines[0]) not in NOT_SHELL:
                yield f"{page}:{first}: {lines[0]}"


def yaml_of_page(root, page, kind="yaml"):
    """(number of the first line, text) of each block of YAML, or of another language."""
    with open(os.path.join(root, page), encoding="utf-8") as text:
        return [(first, "\n".join(lines) + "\n") for language, first, lines in blocks(text.read()) if language == kind]


def examples_of_help(name, text):
    """The commands of a help text's examples. name: the words before --help."""
    if "\nExamples:\n" not in text:
        return
    before, examples = text.split("\nExamples:\n", 1)
    start = before.count("\n") + 3
    for number, line in enumerate(examples.split("\n\n", 1)[0].split("\n"), start):
        if re.match(r"  (shoal|source) ", line + " "):
            yield Command(name + " --help", number, command_of(line.strip()))


def subcommands_of_help(text):
    """Names of the subcommands that a help text lists."""
    listed = re.split(r"^Examples:", text, maxsplit=1, flags=re.M)[0]
    return re.findall(r"^  ([a-z][a-z0-9-]*)  ", listed, re.M)


# What stands for itself in shown output, and what it may be in fact.
_VARIES = (
    ("…", r".*"),
    (r"-[0-9a-f]{6}\b", r"-[0-9a-f]{6}"),                                      # of a job's identity
    (r"\d+(?:\.\d+)? (?:ms|s|min|h|d)\b", r"\\d+(?:\\.\\d+)? (?:ms|s|min|h|d)"),  # a time
    (r"\d+(?:\.\d+)?", r"\\d+(?:\\.\\d+)?"),
    (r" in \w+$", r"(?: in \\w+)?"),                                             # where in the kernel a thread waits
    (r" {2,}", " +"),                                                           # columns
)


def _pattern(line):
    """A regular expression for a line of shown output."""
    splitter = re.compile("|".join(f"({varies})" for varies, _ in _VARIES))
    pattern, at = "", 0
    for found in splitter.finditer(line):
        pattern += re.escape(line[at:found.start()]) + _VARIES[found.lastindex - 1][1].replace("\\\\", "\\")
        at = found.end()
    return pattern + re.escape(line[at:])


def matches(shown, printed):
    """Whether printed lines are those that a document shows: numbers, times, job IDs and widths of columns may be others, `…` stands
    for anything, and as a line of its own for any lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "…" else _pattern(line.rstrip()) + " *\n" for line in shown)
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None
