"""unity.py OUT LINES TARGETS…: groups the source files of each target, so that one compilation takes several of them.

Called by cmake/unity.cmake when CMake configures. Reads from standard input, a target a line: its name, then its files,
separated by semicolons, as paths below src (or the folder that the last argument names). Writes OUT/TARGET_N.cc, each an
#include for every file of the group, and prints, a target a line, its name and what it is compiled from: groups, and the files
that stay alone.

Two files share a group only if neither can change what the other means: no name that one keeps for itself (anonymous namespace,
static, alias, macro) is looked up in the other, or in a header of ours that the other includes. What this overlooks, the
compiler finds: the name is then declared twice, or ambiguous.
"""
import os
import re
import sys

# Comments, string and character literals.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
DEFINE = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)', re.M)
# A name that is looked up: not a member of something, not qualified.
NAME = re.compile(r'(?<![\w.:>])[A-Za-z_]\w*|(?<=[^-]>)[A-Za-z_]\w*')
HEADER_NAME = re.compile(NAME.pattern.replace(r"\w*", r"\w*\b(?!\s*\()"))
NAMESPACE = re.compile(r'(?:inline\s+)?namespace\s*([\w:]*)\s*$')
# Declares a name: of a type; of a variable with its value; of a function; of a variable without one.
TYPE = re.compile(r'(?:template\s*)?(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)')
VALUE = re.compile(r'[^()]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)*=')
CALL = re.compile(r'(?<![\w:])(\w+)\s*\(')
PLAIN = re.compile(r'(\w+)\s*(?:\[[^\]]*\]\s*)*$')
ALIAS = re.compile(r'(?:using|namespace)\s+(\w+)\s*=')
KEYWORDS = {"static_assert", "const", "void", "unsigned", "int", "bool", "char", "float", "double", "auto", "noexcept", "decltype"}
# Kernels that are compiled once an instruction set include themselves.
ALONE = re.compile(r'HWY_TARGET_INCLUDE|foreach_target')


class File:
    """What a file keeps for itself (own), what it looks up (names), the same if it is a header, where functions are merely
    declared (header_names), and which headers of ours it includes."""

    def __init__(self, text):
        self.lines = text.count("\n")
        self.alone = bool(ALONE.search(text))
        self.includes = INCLUDE.findall(text)
        self.own = set(DEFINE.findall(text))
        # The same alias in two files is no harm.
        self.aliases = {}
        code = NOISE.sub(lambda match: '""' if match.group()[0] in "R\"'" else " ", text)
        code = DIRECTIVE.sub("", code)
        self.names = set(NAME.findall(code))
        self.header_names = set(HEADER_NAME.findall(code))
        self.read_declarations(code)

    def read_declarations(self, code):
        scopes = []  # "named" and "own" namespaces, "function" for what follows parentheses, "body" for every other brace
        statement = ""
        for token in re.findall(r"[{};]|[^{};]+", code):
            if token == "{":
                namespace = NAMESPACE.search(statement)
                if namespace:
                    scopes.append("named" if namespace.group(1) else "own")
                else:
                    self.declare(statement, scopes)
                    scopes.append("function" if "(" in statement else "body")
            elif token == "}":
                if scopes:
                    scopes.pop()
            elif token == ";":
                self.declare(statement, scopes)
            else:
                statement += token
                if "function" in scopes:
                    self.header_names.update(NAME.findall(token))
                continue
            statement = ""

    def declare(self, statement, scopes):
        """Adds what a statement of a namespace keeps for this file, if it keeps anything."""
        if "function" in scopes or "body" in scopes:
            return
        statement = " ".join(statement.split())
        alias = ALIAS.match(statement)
        if alias:
            self.aliases[alias.group(1)] = statement
        elif statement.startswith("using "):
            self.aliases[statement.split("::")[-1]] = statement
        elif "own" in scopes or re.match(r"(inline )?(static|constexpr) |const [^(]*=", statement):
            name = declared(statement)
            if name and name not in KEYWORDS:
                self.own.add(name)


def declared(statement):
    """The name that a statement declares, or None: a friend's or a member's definition."""
    plain = re.sub(r"\[\[.*?\]\]\s*", "", statement)
    while (shorter := re.sub(r"<[^<>()=]*(\([^<>()]*\)[^<>()]*)?>", "", plain)) != plain:
        plain = shorter  # arguments of templates
    found = TYPE.match(plain) or VALUE.match(plain)
    if found:
        return found.group(1)
    if "(" in plain:
        found = CALL.search(plain)
    else:
        found = PLAIN.search(plain)
    return found.group(1) if found else None


class Sources:
    """Files by their path below root, each read once."""

    def __init__(self, root):
        self.root = root
        self.files = {}
        self.mentioned = {}

    def get(self, path):
        if path not in self.files:
            with open(os.path.join(self.root, path), encoding="utf-8") as f:
                self.files[path] = File(f.read())
        return self.files[path]

    def headers(self, path, seen):
        for name in self.get(path).includes:
            if name not in seen and os.path.exists(os.path.join(self.root, name)):
                seen.add(name)
                self.headers(name, seen)
        return seen

    def mentions(self, path):
        """Every name that a file and the headers of ours behind it look up; aliases matter for the file alone."""
        if path not in self.mentioned:
            names = set(self.get(path).names)
            for header in self.headers(path, set()):
                names |= self.get(header).header_names
            self.mentioned[path] = names
        return self.mentioned[path]


class Group:
    def __init__(self):
        self.paths = []
        self.lines = 0
        self.own = set()
        self.aliases = {}
        self.mentions = set()
        self.names = set()

    def takes(self, file, mentions, limit):
        if self.lines + file.lines > limit or self.own & mentions or file.own & self.mentions:
            return False
        return all(self.aliases.get(name, said) == said for name, said in file.aliases.items()) and not (
            (self.aliases.keys() - file.aliases.keys()) & file.names or
            (file.aliases.keys() - self.aliases.keys()) & self.names)

    def add(self, path, file, mentions):
        self.paths.append(path)
        self.lines += file.lines
        self.own |= file.own
        self.aliases |= file.aliases
        self.mentions |= mentions
        self.names |= file.names


def group(sources, paths, limit):
    """The groups of a target's files, in the order of their paths: neighbours share most headers."""
    groups = []
    for path in sorted(paths):
        file = sources.get(path)
        mentions = sources.mentions(path)
        taking = None
        if not file.alone:
            taking = next((one for one in groups if one.takes(file, mentions, limit)), None)
        if taking is None:
            taking = Group()
            groups.append(taking)
        taking.add(path, file, mentions)
        if file.alone:
            taking.lines = limit
    return groups


def write(path, text):
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    out, limit, root = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    os.makedirs(out, exist_ok=True)
    sources = Sources(root)
    for line in sys.stdin:
        target, *paths = line.strip().split(";")
        compiled = []
        for number, one in enumerate(group(sources, paths, limit)):
            if len(one.paths) == 1:
                compiled.append(os.path.join(root, one.paths[0]))
                continue
            path = os.path.join(out, f"{target}_{number}.cc")
            write(path, "".join(f'#include "{name}"\n' for name in one.paths))
            compiled.append(path)
        print(";".join([target] + compiled))


if __name__ == "__main__":
    main()
