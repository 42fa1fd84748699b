"""All checks of script/lint over one checkout. Standard library only; clang-format-14 for the format."""
import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import classes  # noqa: E402
import files  # noqa: E402
import foreign_fields  # noqa: E402
import locks  # noqa: E402
import rooms  # noqa: E402
import sizes  # noqa: E402
import words  # noqa: E402


def check_format(root, paths, fix):
    """Findings of clang-format, or none after it has rewritten the files."""
    sources = [p for p in paths if files.is_cpp(p)]
    command = ["clang-format-14"] + (["-i"] if fix else ["--dry-run", "--ferror-limit=1"])
    findings = []
    batches = [sources[i::2] for i in range(2)]
    running = [subprocess.Popen(command + batch, cwd=root, stderr=subprocess.PIPE, text=True) for batch in batches if batch]
    for process in running:
        for line in process.communicate()[1].splitlines():
            parts = line.split(":", 3)
            if len(parts) == 4 and ("warning" in line or "error" in line) and parts[1].isdigit():
                findings.append(files.Finding("format", parts[0], int(parts[1]), "not as clang-format-14 has it; "
                                              "`script/lint --fix` rewrites it"))
    return findings


def check_page(root):
    """A finding if the bundle of the page that the program contains is not of its sources."""
    script = os.path.join(root, "script/page")
    if not os.path.exists(script):
        return []
    done = subprocess.run([script, "fresh"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        return []
    return [files.Finding("page", "web/dist.sources", 1, done.stderr.strip() or "cannot be checked")]


def read_waivers(root):
    """{(rule, key): line} of tools/lint/waivers.txt, and findings about waivers without a reason."""
    waivers, findings = {}, []
    for number, row in files.table(root, "waivers.txt"):
        if len(row) < 4:
            findings.append(files.Finding("waiver", "tools/lint/waivers.txt", number, "expected: rule, path, reason"))
        else:
            waivers[(row[0], row[1])] = number
    return waivers, findings


def apply_waivers(root, findings):
    """The findings that no waiver covers, plus the waivers that cover nothing."""
    waivers, left = read_waivers(root)
    used = set()
    for finding in findings:
        key = (finding.rule, finding.key)
        if key in waivers:
            used.add(key)
        else:
            left.append(finding)
    left += [files.Finding("waiver", "tools/lint/waivers.txt", line, f"nothing needs '{rule} {key}' any more")
             for (rule, key), line in waivers.items() if (rule, key) not in used]
    return left


def main(argv=None):
    parser = argparse.ArgumentParser(prog="script/lint", description="Format, order of rooms, owners of third-party "
                                     "headers, sizes of files, functions, folders and classes, names. Ends with 1 when anything is found.")
    parser.add_argument("--fix", action="store_true", help="let clang-format-14 rewrite what it would complain about")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."),
                        help=argparse.SUPPRESS)
    parser.add_argument("--no-format", action="store_true", help="leave clang-format-14 out")
    parser.add_argument("--locks", action="store_true", help="only the check of locks by clang; the preset release must have been configured")
    arguments = parser.parse_args(argv)
    root = os.path.abspath(arguments.root)
    paths = files.all_files(root)
    if arguments.locks:
        findings = locks.check_with_clang(root)
        for finding in sorted(findings, key=lambda f: (f.path, f.line)):
            print(finding)
        print(f"lint: locks, {len(findings)} findings")
        return 1 if findings else 0
    findings = [] if arguments.no_format else check_format(root, paths, arguments.fix)
    for rule in (classes, foreign_fields, locks, rooms, sizes, words):
        findings += rule.check(root, paths)
    findings = apply_waivers(root, findings + check_page(root))
    for finding in sorted(findings, key=lambda f: (f.path, f.line)):
        print(finding)
    print(f"lint: {len(paths)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
