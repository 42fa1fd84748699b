"""Factorization machines beside xLearn's: wall time of the whole command from libsvm text, held-out AUC and log-loss.

All run in every round, one after the other; k = 8 factors, rows of unit length, two threads. xLearn (from PyPI,
compiled; if that fails, its row is left out) trains with AdaGrad for the same number of epochs. Logistic regression is shown to
measure the gain from factors.
"""
import json
import os
import subprocess
import sys
import tempfile

import logistic
import measure
import peers

XLEARN = "xlearn==0.40a1"
PROGRAM = """
import sys, xlearn
task, train, model, test, out, epochs = sys.argv[1:]
fm = xlearn.create_fm()
if task == "train":
    fm.setTrain(train)
    fm.disableEarlyStop()
    fm.fit({"task": "binary", "lr": 0.2, "lambda": 0.00002, "k": 8, "epoch": int(epochs), "opt": "adagrad", "nthread": 2}, model)
else:
    fm.setTest(test)
    fm.setSigmoid()
    fm.predict(model, out)
"""


def has_xlearn():
    """Installs xLearn if it is missing; False if that fails."""
    if peers.has("xlearn"):
        return True
    peers.ensure(optional=False)
    for requirement in ("setuptools wheel numpy scipy", f"--no-build-isolation {XLEARN}"):
        done = subprocess.run([peers.PYTHON, "-m", "pip", "install", "--quiet", *requirement.split()], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"fm: cannot install {requirement}", file=sys.stderr)
            return False
    return peers.has("xlearn")


def compare(options, algorithm, program, folder, known=None):
    """Runs the rows of one algorithm and prints its table; `known` is the (AUC, log-loss) of the true model."""
    env = {"SHOAL_HOME": os.path.join(folder, "home"), "USER": "bench"}  # xLearn needs USER
    out = os.path.join(folder, "peer.out")

    # xLearn caches what it has read beside the text. The cache is removed so that every round reads the text.
    texts = [os.path.join(folder, name) for name in ("train.text", "test.text")]
    for text, source in zip(texts, (options.train, options.test)):
        os.symlink(os.path.abspath(source), text)

    def peer(task):
        for left in [text + ".bin" for text in texts if os.path.exists(text + ".bin")]:
            os.unlink(left)
        return logistic.run([peers.PYTHON, "-c", program, task, texts[0], os.path.join(folder, "peer"), texts[1], out,
                             str(options.epochs)], env)[0]

    def ours(trainer, name, *more):
        command = [measure.SHOAL, "train", trainer, "--data", options.train, "-q", "--epochs", str(options.epochs),
                   "--format", "libffm" if algorithm == "ffm" else "libsvm", "--output", os.path.join(folder, name), *more]
        return lambda: logistic.run(command, env)[0]
    rows = [(f"xLearn {algorithm}", lambda: peer("train"), None)] if has_xlearn() else []
    rows += [
        (f"shoal train {algorithm}, 1 worker, 2 threads", ours(algorithm, "one", "--threads", "2"), "one"),
        (f"shoal train {algorithm}, 2 workers + 1 server",
         ours(algorithm, "two", "--workers", "2", "--servers", "1", "--threads", "1"), "two"),
        ("shoal train logistic, 2 threads", ours("logistic", "linear", "--threads", "2"), "linear"),
    ]
    if algorithm == "ffm":
        rows.insert(-1, ("shoal train fm, 2 threads", ours("fm", "plain", "--threads", "2"), "plain"))
    times = measure.interleave([row[:2] for row in rows], options.rounds)
    lines, results = [], {}
    first = measure.median(times[rows[0][0]])
    for name, _, model in rows:
        if model is None:
            peer("predict")
            with open(out, encoding="utf-8") as f:
                probabilities = [float(line) for line in f]
            with open(options.test, encoding="utf-8") as f:
                labels = [float(line.split(None, 1)[0]) > 0 for line in f]
            auc, loss = logistic.quality(labels, probabilities)
        else:
            said = json.loads(logistic.run([measure.SHOAL, "predict", os.path.join(folder, model), "--data", options.test,
                                            "--json"], env)[1])
            auc, loss = said["auc"], said["log_loss"]
        seconds = measure.median(times[name])
        results[name] = {"seconds": times[name], "auc": auc, "log_loss": loss}
        lines.append([name, f"{seconds:.3f}", f"1/{first / seconds:.1f}", f"{auc:.4f}", f"{loss:.4f}"])
    if known is not None:
        lines.append(["who knows the planted machine", "", "", f"{known[0]:.4f}", f"{known[1]:.4f}"])
    text = "libffm" if algorithm == "ffm" else "libsvm"
    tables = [measure.table([f"whole command from {text} text", "s", "of the first row", "AUC", "log-loss"], lines)]
    measure.finish(algorithm, options, {"results": results}, tables)


def main():
    parser = measure.arguments(__doc__, "fm")
    parser.add_argument("--train", required=True, help="libsvm text")
    parser.add_argument("--test", required=True, help="libsvm text, held out")
    parser.add_argument("--epochs", type=int, default=2, help="of all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(options, "fm", PROGRAM, folder)


if __name__ == "__main__":
    main()
