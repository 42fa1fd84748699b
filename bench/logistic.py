"""Sparse logistic regression beside liblinear: wall time of the whole command from libsvm text, held-out AUC and log-loss.

Both run in every round, one after the other. liblinear is Debian's liblinear-tools (`-s 0 -c 0.1`); its quality is measured on
the probabilities of `liblinear-predict -b 1`.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

import measure


def run(command, env=None):
    """The seconds that a command takes, and its output."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, **(env or {})})
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr}{done.stdout}")
    return seconds, done.stdout


def quality(labels, probabilities):
    """AUC (ties count half) and log-loss."""
    order = sorted(range(len(labels)), key=lambda i: probabilities[i])
    ranks, i = 0.0, 0
    while i < len(order):
        j = i
        while j < len(order) and probabilities[order[j]] == probabilities[order[i]]:
            j += 1
        ranks += sum(labels[k] for k in order[i:j]) * (i + j + 1) / 2
        i = j
    positives = sum(labels)
    auc = (ranks - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))
    loss = -sum(math.log(max(p if y else 1 - p, 1e-15)) for y, p in zip(labels, probabilities)) / len(labels)
    return auc, loss


def liblinear_quality(folder, test):
    """The quality of the model that was trained last."""
    out = os.path.join(folder, "peer.out")
    run(["liblinear-predict", "-b", "1", test, os.path.join(folder, "peer"), out])
    with open(out, encoding="utf-8") as f:
        header = f.readline().split()
        column = header.index("1")
        probabilities = [float(line.split()[column]) for line in f]
    with open(test, encoding="utf-8") as f:
        labels = [float(line.split(None, 1)[0]) > 0 for line in f]
    return quality(labels, probabilities)


def main():
    parser = measure.arguments(__doc__, "logistic")
    parser.add_argument("--train", required=True, help="libsvm text")
    parser.add_argument("--test", required=True, help="libsvm text, held out")
    options = parser.parse_args()
    if shutil.which("liblinear-train") is None:
        sys.exit("liblinear-train is missing: install liblinear-tools")
    with tempfile.TemporaryDirectory() as folder:
        env = {"SHOAL_HOME": os.path.join(folder, "home")}

        def ours(name, *more):
            command = [measure.SHOAL, "train", "logistic", "--data", options.train, "-q", "--output",
                       os.path.join(folder, name), *more]
            return lambda: run(command, env)[0]
        rows = [
            ("liblinear-train -s 0 -c 0.1",
             lambda: run(["liblinear-train", "-s", "0", "-c", "0.1", "-q", options.train, os.path.join(folder, "peer")])[0]),
            ("1 worker, 2 threads", ours("one", "--threads", "2")),
            ("the same, measuring the held-out set", ours("held", "--threads", "2", "--test", options.test)),
            ("2 workers + 1 server", ours("two", "--workers", "2", "--servers", "1", "--threads", "1")),
        ]
        times = measure.interleave(rows, options.rounds)
        peer = measure.median(times[rows[0][0]])
        lines, results = [], {}
        for (name, _), model in zip(rows, (None, "one", "held", "two")):
            seconds = measure.median(times[name])
            if model is None:
                auc, loss = liblinear_quality(folder, options.test)
            else:
                said = json.loads(run([measure.SHOAL, "predict", os.path.join(folder, model), "--data", options.test,
                                       "--json"], env)[1])
                auc, loss = said["auc"], said["log_loss"]
            results[name] = {"seconds": times[name], "auc": auc, "log_loss": loss}
            lines.append([name, f"{seconds:.3f}", f"1/{peer / seconds:.1f}", f"{auc:.4f}", f"{loss:.4f}"])
        tables = [measure.table(["whole command from libsvm text", "s", "of liblinear", "AUC", "log-loss"], lines)]
        measure.finish("logistic", options, {"results": results}, tables)


if __name__ == "__main__":
    main()
