#!/usr/bin/env -S /usr/bin/python3 -B
"""build_commands.py: the documented commands that build and install, as printed, in this checkout, page by page. /usr/local is private
(private_machine.py). A stage of script/ci, which has made the release build before; ends with 77 where such a machine cannot be made."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import documented  # noqa: E402
import places  # noqa: E402
import private_machine  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
# What must be there after a command.
MADE = {"cmake --install build/release --prefix /usr/local": ("/usr/local/bin/shoal", "/usr/local/include/shoal/ps.h",
                                                             "/usr/local/lib/cmake/shoal/shoalConfig.cmake"),
        "ninja -C build/release python_wheel": (os.path.join(ROOT, "build/release/python/dist"),)}


def check(command):
    """Whether a command ends well, and what it makes is there."""
    begin = time.monotonic()
    code = subprocess.run(["bash", "-o", "pipefail", "-c", command.text], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
    absent = [path for path in MADE.get(command.text, ()) if not os.path.exists(path)]
    print(f"{time.monotonic() - begin:6.1f} s  exit code {code}  {command}", *(f"\n    {path} is not there" for path in absent), flush=True)
    return code == 0 and not absent


def main():
    reason = private_machine.enter(network=False)
    if reason:
        print("skipped:", reason)
        sys.exit(77)
    found = [command for page in documented.pages(ROOT) for command in documented.of_page(ROOT, page) if places.of(command.text) == "build"]
    texts = {command.text: command for command in reversed(found)}  # the first place of each
    wrong = sum(not check(command) for command in found if texts[command.text] is command)
    print(f"documents: {len(texts) - wrong} passed, {wrong} failed")
    sys.exit(1 if wrong or not texts else 0)


if __name__ == "__main__":
    main()
