"""Linear models of tables beside scikit-learn, liblinear and Vowpal Wabbit: held-out loss with the defaults of each, rows a second.

Tables are scikit-learn's and statsmodels' own and planted ones (bench/tables_peer.py). Loss: log-loss, mean squared error or mean
Poisson deviance of the same held-out quarter; below 1,000 rows the mean of ten splits, below
10,000 of three. scikit-learn's columns are imputed with
indicators, standardized and one-hot encoded first; Vowpal Wabbit makes one pass over the columns as they are; its time is without
reading, that of the others with it.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import measure

ENVIRONMENT = os.path.join(measure.CACHE, "table-peers")
PACKAGES = ["scikit-learn==1.9.1", "vowpalwabbit==9.11.9", "statsmodels", "pandas"]
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables_peer.py")
PEERS = ("scikit-learn", "liblinear", "vw", "constant")
METRIC = {"logistic": "log_loss", "softmax": "log_loss", "squared": "rmse", "poisson": "deviance"}


def environment(given):
    """The interpreter of the peers' environment, which is made if it is missing."""
    if given:
        return given
    python = os.path.join(ENVIRONMENT, "bin", "python3")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def output(command, env=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr[-800:]}{done.stdout[-800:]}")
    return done.stdout


def ours(folder, base, loss, more):
    """The held-out loss and rows a second of the training alone, and of the whole command."""
    model = os.path.join(folder, "model")
    begin = time.perf_counter()
    output([measure.SHOAL, "train", "linear", "--loss", loss, "--label", "label", "--data", base + ".train.csv", "--test",
            base + ".test.csv", "--output", model, "-q", *more], {"SHOAL_HOME": os.path.join(folder, "home")})
    seconds = time.perf_counter() - begin
    with open(os.path.join(model, "model.json"), encoding="utf-8") as f:
        said = json.load(f)
    value = said["held_out"][METRIC[loss]]
    return {"loss": value ** 2 if loss == "squared" else value, "seconds": seconds, "rows": said["training"]["examples"]}


def one(options, folder, table):
    """{trainer: {"loss", "seconds"}}, means over the splits."""
    sums = {}
    for split in range(table["splits"]):
        base = os.path.join(folder, f"{table['file']}.{split}")
        results = {"shoal": ours(folder, base, table["loss"], options.option)}
        for peer in PEERS:
            if peer == "liblinear" and table["loss"] not in ("logistic", "softmax"):
                continue
            results[peer] = json.loads(output([options.python, "-B", SCRIPT, "train", peer, base + ".train.csv", base + ".test.csv",
                                               table["loss"]]))
        for name, result in results.items():
            entry = sums.setdefault(name, {"loss": 0.0, "seconds": 0.0, "rows": result["rows"]})
            entry["loss"] += result["loss"] / table["splits"]
            entry["seconds"] += result["seconds"] / table["splits"]
    return sums


def main():
    parser = measure.arguments(__doc__, "tables")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the planted tables")
    parser.add_argument("--only", help="tables whose name has this")
    parser.add_argument("--python", help="interpreter of an environment with the peers; one is made otherwise")
    parser.add_argument("--option", action="append", default=[], help="for shoal train, such as --option=--validation=10%%")
    options = parser.parse_args()
    options.python = environment(options.python)
    with tempfile.TemporaryDirectory() as folder:
        output([options.python, "-B", SCRIPT, "generate", folder, str(options.rows)])
        with open(os.path.join(folder, "tables.json"), encoding="utf-8") as f:
            tables = [t for t in json.load(f) if not options.only or options.only in t["name"]]
        results, lines = {}, []
        for table in tables:
            print(table["name"], file=sys.stderr, flush=True)
            result = results[table["name"]] = one(options, folder, table)
            best = min(result[p]["loss"] for p in PEERS[:3] if p in result)
            lines.append([table["name"], f"{table['rows']:,} × {table['columns']}", table["loss"]]
                         + [f"{result[p]['loss']:.5g}" if p in result else "–" for p in ("shoal", *PEERS)]
                         + [f"{result['shoal']['loss'] / best:.3f}"]
                         + [f"{result[p]['rows'] / result[p]['seconds'] / 1e3:.0f}" for p in ("shoal", "scikit-learn", "vw")])
        header = ["table", "size", "loss", "Shoal", "scikit-learn", "liblinear", "Vowpal Wabbit", "constant", "Shoal / best peer",
                  "thousand rows/s: Shoal, whole command", "scikit-learn", "Vowpal Wabbit, training"]
        measure.finish("tables", options, {"results": results}, [measure.table(header, lines)])


if __name__ == "__main__":
    main()
