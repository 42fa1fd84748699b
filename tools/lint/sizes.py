"""Size limits: what does not fit is cut into parts, or says in tools/lint/waivers.txt why not."""
import cpp
from files import Finding, is_cpp, is_test, read

HEADER_LINES, SOURCE_LINES, FUNCTION_LINES, PARAMETERS, NESTING = 300, 600, 60, 6, 4
SCRIPT_LINES = 600


def _check_functions(path, text):
    findings = []
    for f in cpp.functions(text):
        key = f"{path}:{f.name}"
        lines = f.last - f.first + 1
        if lines > FUNCTION_LINES:
            findings.append(Finding("function-lines", path, f.first,
                                    f"{f.name} has {lines} lines, at most {FUNCTION_LINES} are allowed", key))
        if f.parameters > PARAMETERS:
            findings.append(Finding("parameters", path, f.first,
                                    f"{f.name} has {f.parameters} parameters, at most {PARAMETERS} are allowed", key))
        if f.nesting > NESTING:
            findings.append(Finding("nesting", path, f.first,
                                    f"{f.name} nests {f.nesting} deep, at most {NESTING} are allowed", key))
    return findings


def check(root, paths):
    """All findings about sizes among `paths`."""
    findings = []
    for path in paths:
        script = path.endswith(".py")
        if not is_cpp(path) and not script:
            continue
        text = read(root, path)
        lines = text.count("\n")
        limit = HEADER_LINES if path.endswith(".h") else SCRIPT_LINES if script else SOURCE_LINES
        # A test file is a list of cases that nobody reads from end to end: it may be twice as long.
        if is_test(path):
            limit *= 2
        if lines > limit:
            findings.append(Finding("file-lines", path, 1, f"{lines} lines, at most {limit} are allowed"))
        if not script:
            findings += _check_functions(path, text)
    return findings
