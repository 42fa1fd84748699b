"""Reads just enough C++ for the lint: which includes a file has, and where its functions begin and end.

Used by sizes.py and rooms.py. It is no compiler: comments, literals and preprocessor lines are blanked, then braces are
matched and what stands before each opening one says what it opens.
"""
import re

_BLANK = re.compile(
    r"""//(?:[^\n]*\\\n)*[^\n]*               # line comment
      | /\*.*?\*/                             # block comment
      | (?:u8|[uUL])?R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"
      | "(?:\\.|[^"\\\n])*"
      | \b\d(?:'?[\w.])*                      # number, with its ' separators
      | '(?:\\.|[^'\\\n])+'
      | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*        # preprocessor line
    """, re.S | re.M | re.X)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
_TYPE = re.compile(r"^(?:(?:inline|typedef|static|constexpr|export)\s+)*(?:namespace|class|struct|union|extern)\b")
_CONTROL = re.compile(r"^(?:\w+\s*:\s*)?(?:if|for|while|switch|do|try|catch|else)\b")
_QUALIFIER = re.compile(r"\b(?:const|noexcept|override|final|mutable|try|volatile)$|[)&]$")


class Function:
    """One function definition: name, first and last line (1-based), number of parameters, deepest control nesting."""

    def __init__(self, name, first, parameters):
        self.name, self.first, self.parameters = name, first, parameters
        self.last = first
        self.nesting = 0


# Annotations of base/mutex.h.
_LOCKS = re.compile(r"\b(?:(?:PT_)?GUARDED_BY|REQUIRES|EXCLUDES|(?:TRY_)?ACQUIRE|RELEASE|SHOAL_THREAD_SAFETY)"
                    r"\((?:[^()]|\([^()]*\))*\)|\bNO_THREAD_SAFETY_ANALYSIS\b")


def _spaces(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def blank(text):
    """The text with comments, literals, preprocessor lines and annotations of locks replaced by spaces; line breaks stay."""
    return _LOCKS.sub(_spaces, _BLANK.sub(_spaces, text))


def includes(text):
    """(line, path, is_quoted) of every #include."""
    return [(text.count("\n", 0, m.start()) + 1, m.group(1) or m.group(2), m.group(1) is not None)
            for m in _INCLUDE.finditer(text)]


def _without_templates(head):
    """The head of a definition without leading template<…>, requires and [[…]]."""
    head = re.sub(r"\[\[.*?\]\]", " ", head, flags=re.S).strip()
    head = re.sub(r"^(?:(?:public|private|protected)\s*:\s*)+", "", head)
    while head.startswith("template"):
        depth = 0
        for i, c in enumerate(head):
            depth += (c == "<") - (c == ">")
            if c == ">" and depth == 0:
                head = head[i + 1:].strip()
                break
        else:
            break
    return head


def _parameter_list(head):
    """(name, parameters) of a function's head, or None when it holds no parameter list."""
    operator = re.search(r"operator\s*(?:\(\s*\)|[^\s(\w]+|\s\w[\w:<>*& ]*)\s*(?=\()", head)
    if operator:
        name, start = head[operator.start():operator.end()].strip(), operator.end()
    else:
        start, angle = -1, 0
        for i, c in enumerate(head):
            if c == "<":
                angle += 1
            elif c == ">" and head[i - 1] != "-":
                angle = max(0, angle - 1)
            elif c == "(" and angle == 0:
                start = i
                break
        if start < 0:
            return None
        before = re.search(r"([\w:~]+)\s*$", head[:start])
        name = before.group(1) if before else "(lambda)"
    depth = angle = commas = 0
    body = ""
    for i in range(start, len(head)):
        c = head[i]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                break
        elif c == "<":
            angle += 1
        elif c == ">" and head[i - 1] != "-":
            angle = max(0, angle - 1)
        elif c == "," and depth == 1 and angle == 0:
            commas += 1
        body += c
    body = body[1:].strip()
    return name, 0 if body in ("", "void") else commas + 1


def _kind(head):
    """What an opening brace after `head` opens outside functions: 'scope', 'function' or 'init'."""
    if not head or re.search(r"(?:=|,|\(|\breturn)$", head) or re.match(r"^(?:typedef\s+)?enum\b", head):
        return "init" if head else "scope"
    if _TYPE.match(head) and not re.search(r"\)\s*(?:const|noexcept|override)?$", head):
        return "scope"
    if "(" not in head:
        return "init"
    if re.search(r"\)[^()]*->[^()]*$", head) or re.search(r"->\s*decltype\s*\(.*\)$", head):
        return "function"
    if re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head):  # a constructor's initialisers
        return "function" if head[-1] in ")}" else "init"
    return "function" if _QUALIFIER.search(head) else "init"


def functions(text):
    """All function definitions of a file, those in classes included; lambdas count as part of what holds them."""
    code = blank(text)
    found, stack = [], []          # stack: (kind, parens outside, start of the head outside)
    start = parens = 0             # where the current head began; depth of round brackets in it
    current = None                 # the Function we are in, and how deep its control blocks are
    nesting, line, counted = [], 1, 0

    def line_at(position):
        nonlocal line, counted
        line += code.count("\n", counted, position)
        counted = position
        return line

    for match in re.finditer(r"[(){};]", code):
        at, c = match.start(), match.group(0)
        if c == "(":
            parens += 1
        elif c == ")":
            parens -= 1
        elif c == ";":
            if parens == 0:
                start = at + 1
        elif c == "{":
            raw = code[start:at]
            head = _without_templates(raw)
            if current is not None:
                control = bool(_CONTROL.match(head.lstrip("} "))) and parens == 0
                nesting.append(control)
                current.nesting = max(current.nesting, sum(nesting))
                kind = "block"
            else:
                kind = "init" if parens else _kind(head)
                listed = _parameter_list(head) if kind == "function" else None
                if listed:
                    first = start + len(raw) - len(raw.lstrip())
                    current = Function(listed[0], line_at(first), listed[1])
                    found.append(current)
                    nesting = []
                elif kind == "function":
                    kind = "scope"
            stack.append((kind, parens, start))
            parens, start = 0, at + 1
        elif stack:
            kind, parens, outer = stack.pop()
            if kind == "function":
                current.last = line_at(at)
                current = None
            elif kind == "block":
                nesting.pop()
            # An initialiser, or a lambda among arguments, goes on with the head it stood in.
            start = outer if kind == "init" or parens else at + 1
            if kind == "init":
                code = code[:outer] + re.sub(r"\{.*$", lambda m: re.sub(r"[^\n]", " ", m.group(0)[:-1]) + "}",
                                             code[outer:at + 1], flags=re.S) + code[at + 1:]
    return found
