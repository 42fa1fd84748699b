"""Factorization machines beside xLearn's: wall time of the whole command from libsvm text, held-out AUC and log-loss.

All run in every round, one after the other; k = 8 factors, rows of unit length, two threads. xLearn (from PyPI, built there; where
that fails its row is left out) trains with AdaGrad for as many epochs as Shoal. Logistic regression stands beside for what factors
bring.
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
    """Installs it where it is missing; False if that cannot be done."""
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


def main():
    parser = measure.arguments(__doc__, "fm")
    parser.add_argument("--train", required=True, help="libsvm text")
    parser.add_argument("--test", required=True, help="libsvm text, held out")
    parser.add_argument("--epochs", type=int, default=2, help="of all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = {"SHOAL_HOME": os.path.join(folder, "home"), "USER": "bench"}  # xLearn needs USER
        out = os.path.join(folder, "peer.out")

        # xLearn leaves what it has read beside the text, for the next time: here every round reads the text.
        texts = [os.path.join(folder, name) for name in ("train.libsvm", "test.libsvm")]
        for text, source in zip(texts, (options.train, options.test)):
            os.symlink(os.path.abspath(source), text)

        def peer(task):
            for left in [text + ".bin" for text in texts if os.path.exists(text + ".bin")]:
                os.unlink(left)
            return logistic.run([peers.PYTHON, "-c", PROGRAM, task, texts[0], os.path.join(folder, "peer"), texts[1], out,
                                 str(options.epochs)], env)[0]

        def ours(algorithm, name, *more):
            command = [measure.SHOAL, "train", algorithm, "--data", options.train, "-q", "--epochs", str(options.epochs),
                       "--output", os.path.join(folder, name), *more]
            return lambda: logistic.run(command, env)[0]
        rows = [("xLearn fm", lambda: peer("train"))] if has_xlearn() else []
        rows += [
            ("shoal train fm, 1 worker, 2 threads", ours("fm", "one", "--threads", "2")),
            ("shoal train fm, 2 workers + 1 server", ours("fm", "two", "--workers", "2", "--servers", "1", "--threads", "1")),
            ("shoal train logistic, 2 threads", ours("logistic", "linear", "--threads", "2")),
        ]
        times = measure.interleave(rows, options.rounds)
        lines, results = [], {}
        first = measure.median(times[rows[0][0]])
        for name, model in zip([r[0] for r in rows], [None, "one", "two", "linear"][-len(rows):]):
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
        tables = [measure.table(["whole command from libsvm text", "s", "of the first row", "AUC", "log-loss"], lines)]
        measure.finish("fm", options, {"results": results}, tables)


if __name__ == "__main__":
    main()
