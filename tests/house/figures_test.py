"""The figures of README and docs/engines/kubernetes.md are those recorded in docs/bench."""
import json
import os
import re
import unittest

SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Page, a line of it with {} for figures, and where these are recorded: file of docs/bench, row, column.
LINES = [
    ("README.md", "| word vectors of 40 MB of reviews, 2 threads | {:.2f} M words/s | gensim 4: {:.2f} |",
     [("word2vec", "shoal, 1 worker, 2 threads", 1), ("word2vec", "gensim, 2 threads", 1)]),
    ("README.md", "| from the command until 4 tasks run | {:.0f} ms | `mpirun`: {:.0f} ms |",
     [("small-jobs", "4 tasks running, ms", 1), ("small-jobs", "the same by `mpirun`, ms", 1)]),
    ("README.md", "| the same for 7 trainers on Kubernetes (8 pods) | {:.1f} s | `kubectl apply`: {:.1f} s |",
     [("kubernetes", "shoal run, word2vec of 7 tasks (8 pods)", 1), ("kubernetes", "kubectl apply, Jobs of 8 pods", 1)]),
    ("README.md", "| gensim 4, 2 threads | {:.2f} | 1 | | {:.0f} |",
     [("word2vec", "gensim, 2 threads", 1), ("word2vec", "gensim, 2 threads", 6)]),
    ("README.md", "| one worker, 1 thread, server in its process | {:.2f} | {:.1f} (of 1 thread) | {:.0f} % | {:.0f} |",
     [("word2vec", "shoal, 1 worker, 1 threads", column) for column in (1, 3, 4, 6)]),
    ("README.md", "| one worker, 2 threads, server in its process | {:.2f} | {:.1f} | {:.0f} % | {:.0f} |",
     [("word2vec", "shoal, 1 worker, 2 threads", column) for column in (1, 3, 4, 6)]),
    ("README.md", "| the same, AVX2 forced | {:.2f} | {:.1f} | {:.0f} % | {:.0f} |",
     [("word2vec", "shoal, 1 worker, 2 threads, AVX2", column) for column in (1, 3, 4, 6)]),
    ("README.md", "| 2 workers + 1 server, own processes | {:.2f} | {:.1f} | {:.0f} % | {:.0f} |",
     [("word2vec", "shoal, 2 workers + 1 server, processes", column) for column in (1, 3, 4, 6)]),
    ("README.md", "| from command to exit | {:.0f} ms |", [("small-jobs", "4 × `true`, `shoal run`, ms", 1)]),
    ("README.md", "| durable commits ({:.0f} for the first job of a new state directory) | {:.0f} |",
     [("small-jobs", "durable commits, first job of a new state home", 1), ("small-jobs", "durable commits of it", 1)]),
    ("README.md", "| a follower is signalled / has ended after the last worker's end | {:.0f} ms / {:.0f} ms |",
     [("small-jobs", "follower told after the last worker's end, ms", 1), ("small-jobs", "follower gone and command over, ms", 1)]),
    ("README.md", "| 4 tasks running (`mpirun` of the same: {:.0f} ms) | {:.0f} ms |",
     [("small-jobs", "the same by `mpirun`, ms", 1), ("small-jobs", "4 tasks running, ms", 1)]),
    ("README.md", "| 16 tasks cancelled: the last process has ended | {:.0f} ms |",
     [("small-jobs", "16 tasks cancelled, last process gone, ms", 1)]),
    ("README.md", "| a task's log lines at {:.0f} MB/s, core-seconds per GB: launcher, coordinator, controller (`cat` into a file: {:.2f}) | "
     "{:.2f}, {:.2f}, {:.2f} |",
     [("small-jobs", "lines of one task, MB/s", 1), ("small-jobs", "… `cat` from the same pipe into a file", 1),
      ("small-jobs", "lines of one task, processor seconds a GB: launcher", 1), ("small-jobs", "… coordinator", 1),
      ("small-jobs", "… controller", 1)]),
    ("README.md", "| Kubernetes, 2 nodes: word2vec of 7 tasks, all training, with concurrent compilers | {:.1f} s | `kubectl apply` of 8 plain pods until "
     "all run {:.1f} s |",
     [("kubernetes", "shoal run, word2vec of 7 tasks (8 pods)", 1), ("kubernetes", "kubectl apply, Jobs of 8 pods", 1)]),
    ("docs/engines/kubernetes.md", "| from the command until the last of 7 word2vec tasks runs | {:.1f} s, {:.2f} × `kubectl apply` of 8 plain pods",
     [("kubernetes", "shoal run, word2vec of 7 tasks (8 pods)", column) for column in (1, 4)]),
    ("docs/engines/kubernetes.md", "the launcher copied (containerd before 2.1): {:.1f} s, {:.2f} ×",
     [("kubernetes", "shoal run, 7 programs of an image (8 pods)", column) for column in (1, 4)]),
]
# Rows of README's fault table in words: the medians of these together, and of the controller.
FAULTS = "median {:.1f}–{:.1f} s from the kill to the end, {:.1f} s where the controller is lost and the job is to stop"


def read(*parts):
    with open(os.path.join(SOURCE, *parts), encoding="utf-8") as f:
        return f.read()


def rows(record):
    """{first cell: cells} of all tables of a record."""
    lines = sum(record.get("tables", [record.get("table", [])]), [])
    return {cells[0]: cells for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|"))}


def figure(name, row, column):
    """A recorded figure, so that half of its last digit is rounded up."""
    return float(re.sub("[%,]", "", rows(json.loads(read("docs", "bench", name + ".json")))[row][column])) + 1e-9


class Figures(unittest.TestCase):
    def test_lines(self):
        for page, line, recorded in LINES:
            with self.subTest(line):
                self.assertIn(line.format(*(figure(*place) for place in recorded)), read(page))

    def test_faults(self):
        medians = sorted(figure("faults", name, 7) for name in ("worker", "server", "launcher", "coordinator"))
        self.assertIn(FAULTS.format(medians[0], medians[-1], figure("faults", "controller", 7)), read("README.md"))


if __name__ == "__main__":
    unittest.main()
