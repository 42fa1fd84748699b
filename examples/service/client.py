"""Asks the service for squares; while it is away for a moment, again."""
import os
import time
import urllib.error
import urllib.request

STEPS = int(os.environ.get("STEPS", "100"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work


def ask(number):
    until = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(f"http://{os.environ['SERVICE']}/square/{number}", timeout=5) as answer:
                return int(answer.read())
        except (urllib.error.URLError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


assert ask(0) == 0  # it was ready before we were started
print("ready")
for step in range(STEPS):
    assert ask(step) == step * step
    time.sleep(PAUSE)
