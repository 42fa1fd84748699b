"""check_needs.py --glibc VERSION [--may-share LIBRARY]… FILE…: ends with 1 and a sentence unless each program or library runs
with that glibc, and loads nothing but glibc, libgcc and what --may-share names. Called by script/package."""
import argparse
import re
import subprocess
import sys

# What every distribution has, glibc and its compiler's run-time.
EVERYWHERE = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def number(version):
    return tuple(int(part) for part in version.split("."))


def faults(path, glibc, allowed):
    headers = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"NEEDED +(\S+)", headers):
        if library not in allowed:
            yield f"{path} loads {library}, which not every machine has"
    if re.search(r"R(UN)?PATH", headers):
        yield f"{path} has a path of this machine in it"
    symbols = subprocess.run(["objdump", "-T", path], capture_output=True, text=True).stdout
    for line in symbols.splitlines():
        version = re.search(r"\(?GLIBC_([\d.]+)\)?\s+(\S+)$", line)
        if version and "*UND*" in line and number(version.group(1)) > number(glibc):
            yield f"{path} calls {version.group(2)} of glibc {version.group(1)}, newer than {glibc}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--glibc", required=True)
    parser.add_argument("--may-share", action="append", default=[])
    parser.add_argument("files", nargs="+")
    given = parser.parse_args()
    found = [fault for path in given.files for fault in faults(path, given.glibc, EVERYWHERE | set(given.may_share))]
    for fault in found:
        print("package:", fault, file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
