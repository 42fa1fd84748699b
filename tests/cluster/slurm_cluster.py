"""What tests see of a Slurm cluster, and what they do to it. Used by slurm_test.py."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from harness import PATIENCE, poll_until  # noqa: E402

SCRATCH = os.environ.get("SHOAL_TEST_SLURM", "")
WAIT = 60 * PATIENCE


def call(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


def node(what, name):
    subprocess.run([os.path.join(SCRATCH, "node"), what, name], check=True)


def queue():
    """[(number, state, reason)] of what waits or runs."""
    return [tuple(line.split("|")) for line in call("squeue", "--noheader", "--format=%i|%T|%r").splitlines()]


def start(home, text, *more, **options):
    path = home.write("job.yaml", text)
    return home.start("run", path, "--engine", "slurm", *more, **options)


def said(process):
    with open(process.log, encoding="utf-8", errors="replace") as file:
        return file.read()


def finish(process, code=0, seconds=WAIT):
    got = process.wait(timeout=seconds)
    assert got == code, f"exit code {got}, expected {code}:\n{said(process)}"
    return said(process)


def quiet():
    """Waits until nothing of ours is in the queue and all nodes are idle."""
    assert poll_until(lambda: not queue(), WAIT, 0.2), queue()
    idle = poll_until(lambda: call("sinfo", "--noheader", "--Node", "--partition=main", "--format=%T").split() == ["idle"] * 3, WAIT, 0.2)
    assert idle, call("sinfo")


def job_dir(home):
    jobs = os.path.join(home.home, "jobs")
    return os.path.join(jobs, sorted(os.listdir(jobs))[0])


def corpus(home, lines=3000):
    words = ["sea", "ship", "wave", "land", "tree", "leaf", "fish", "bird", "wind", "rain"]
    state, text = 12345, []
    for _ in range(lines):
        line = []
        for _ in range(12):
            state = (state * 1103515245 + 12345) % (1 << 31)
            line.append(words[(state >> 16) % len(words)])
        text.append(" ".join(line))
    return home.write("text.txt", "\n".join(text) + "\n")


def vectors(path):
    with open(os.path.join(path, "vectors.bin"), "rb") as file:
        return file.read()
