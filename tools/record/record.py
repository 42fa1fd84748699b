"""record.py SHOAL TEXT OUTPUT: runs two commands on a terminal and writes what it showed, as an SVG whose frames follow each other in
time. Called by script/record. Knows the escape sequences that the live display writes (src/cli/terminal/terminal_status.cc), and no others."""
import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time

COLUMNS, ROWS = 88, 20
COMMANDS = ("shoal train word2vec --data kjv.txt.zst --output vectors --workers 2 --epochs 15", "shoal nearest vectors silver")
COLORS = {"31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "34": "#61afef", "35": "#c678dd", "36": "#56b6c2", "90": "#7f848e", "2": "#7f848e"}
HOLD, LAST, LEAST = 0.4, 5.0, 0.25  # seconds: between a command's typing and its start, of the last frame, between two frames
WIDTH, HEIGHT = 8.43, 18.0  # of a character at 14 px


class Screen:
    """Lines of (character, color), and the cursor."""

    def __init__(self):
        self.lines, self.row, self.column, self.color = [[]], 0, 0, ""

    def write(self, text):
        for found in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|(.)", text, re.S):
            numbers, action, char = found.groups()
            if action:
                self.act(action, numbers)
            elif char == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append([])
            elif char == "\r":
                self.column = 0
            else:
                line = self.lines[self.row]
                line += [(" ", "")] * (self.column + 1 - len(line))
                line[self.column] = (char, self.color)
                self.column += 1

    def act(self, action, numbers):
        if action == "m":
            self.color = next((COLORS[n] for n in numbers.split(";") if n in COLORS), "")
        elif action == "A":
            self.row = max(0, self.row - int(numbers or 1))
        elif action == "K":
            del self.lines[self.row][self.column:]
        elif action == "J":
            del self.lines[self.row][self.column:], self.lines[self.row + 1:]

    def frame(self):
        lines = [tuple(line) for line in self.lines]
        while lines and not lines[-1]:
            lines.pop()
        return tuple(lines[-ROWS:])


def run(screen, frames, line, environ, folder):
    """One command: what the screen showed, with the time since the recording began."""
    def keep(at):
        if not frames or (at - frames[-1][0] >= LEAST and screen.frame() != frames[-1][1]):
            frames.append((at, screen.frame()))

    begin = frames[-1][0] if frames else 0.0
    screen.write("\x1b[32m$\x1b[0m " + line + "\r\n")
    frames.append((begin + HOLD, screen.frame()))
    start, begin = time.monotonic(), begin + 2 * HOLD
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS + 4, COLUMNS, 0, 0))
    with subprocess.Popen(line.split(), stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environ) as process:
        os.close(theirs)
        rest = b""
        while True:
            try:
                rest += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            whole = max(rest.rfind(end) for end in (b"\n", b"m", b"K", b"J", b"A")) + 1
            screen.write(rest[:whole].decode("utf-8", "replace").replace(folder + "/", ""))
            rest = rest[whole:]
            keep(begin + time.monotonic() - start)
    screen.write(rest.decode("utf-8", "replace").replace(folder + "/", ""))
    frames.append((begin + time.monotonic() - start + LEAST, screen.frame()))
    if process.returncode != 0:
        sys.exit(f"record: `{line}` ended with {process.returncode}")


def text_of(line, y):
    """A line as SVG text, a span for each run of one color."""
    spans, at = "", 0
    while at < len(line):
        end = at
        while end < len(line) and line[end][1] == line[at][1]:
            end += 1
        fill = f' fill="{line[at][1]}"' if line[at][1] else ""
        spans += f"<tspan{fill}>{html.escape(''.join(char for char, _ in line[at:end]))}</tspan>"
        at = end
    return f'<text x="14" y="{y:.0f}" xml:space="preserve">{spans}</text>'


def svg(frames):
    """Each frame is seen from its time until the next one's, and all of them again after the last."""
    total = frames[-1][0] + LAST
    height = 20 + HEIGHT * max(len(frame) for _, frame in frames)
    style, groups = "", ""
    for number, (begin, frame) in enumerate(frames):
        end = frames[number + 1][0] if number + 1 < len(frames) else total
        style += (f"@keyframes f{number}{{0%{{visibility:hidden}}{100 * begin / total:.2f}%{{visibility:visible}}"
                  f"{100 * end / total:.2f}%,100%{{visibility:{'visible' if end == total else 'hidden'}}}}}"
                  f".f{number}{{animation:f{number} {total:.1f}s step-end infinite}}\n")
        groups += f'<g class="f{number}">' + "\n".join(text_of(line, 24 + HEIGHT * i) for i, line in enumerate(frame)) + "</g>\n"
    # Where nothing is animated the last frame is seen.
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{28 + WIDTH * COLUMNS:.0f}" height="{height:.0f}" role="img" '
            f'aria-label="A terminal: {html.escape("; ".join(COMMANDS))}">\n'
            f"<style>text{{font:14px monospace;fill:#d7dae0}}g{{visibility:hidden}}g:last-of-type{{visibility:visible}}\n{style}</style>\n"
            f'<rect width="100%" height="100%" rx="6" fill="#1e2127"/>\n{groups}</svg>\n')


def main(shoal, text, output):
    frames, screen = [], Screen()
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(text, os.path.join(folder, "kjv.txt.zst"))
        os.symlink(shoal, os.path.join(folder, "shoal"))
        environ = {"PATH": folder + ":/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": folder,
                   "SHOAL_HOME": os.path.join(folder, "home")}
        for line in COMMANDS:
            run(screen, frames, line, environ, os.path.realpath(folder))
    with open(output, "w", encoding="utf-8") as file:
        file.write(svg(frames))
    print(f"{output}: {len(frames)} frames, {frames[-1][0]:.1f} s")


main(*sys.argv[1:])
