"""Field-aware factorization machines beside xLearn's: wall time of the whole command from libffm text, held-out AUC and log-loss.

All run in every round, one after the other; k = 4 factors, rows of unit length, two threads, the same number of epochs. Without
--train and --test the data is synthetic: clicks of 18 fields with up to 2,000 classes each, drawn from a field-aware machine whose own
AUC and log-loss are shown for comparison. xLearn is installed from PyPI and compiled; if that fails, its row is left out.
"""
import math
import os
import random
import tempfile

import fm
import logistic
import measure

FIELDS = 18
PROGRAM = fm.PROGRAM.replace("create_fm", "create_ffm").replace('"k": 8', '"k": 4')


def write_planted(path, examples, seed):
    """Writes examples; returns the labels and the probabilities of the machine that drew them."""
    rng = random.Random(seed)
    sizes = [min(2000, 4 + 3 ** (f % 8)) for f in range(FIELDS)]
    begins = [sum(sizes[:f]) for f in range(FIELDS)]
    weights = {}

    def hidden(feature, towards):
        key = feature * FIELDS + towards
        if key not in weights:
            own = random.Random(key * 7919 + 1)
            weights[key] = (own.gauss(0, 0.6), own.gauss(0, 0.6))
        return weights[key]
    labels, probabilities = [], []
    with open(path, "w", encoding="ascii") as out:
        for _ in range(examples):
            chosen = [begins[f] + int(sizes[f] * rng.random() ** 3) for f in range(FIELDS)]
            margin = -1.0
            for i in range(FIELDS):
                for j in range(i + 1, FIELDS):
                    if (i * 5 + j * 3) % 4 == 0:  # the pairs of fields that mean something
                        a, b = hidden(chosen[i], j), hidden(chosen[j], i)
                        margin += a[0] * b[0] + a[1] * b[1]
            probability = 1 / (1 + math.exp(-margin))
            label = int(rng.random() < probability)
            labels.append(label)
            probabilities.append(probability)
            out.write(f"{label} " + " ".join(f"{f}:{c}:1" for f, c in enumerate(chosen)) + "\n")
    return labels, probabilities


def main():
    parser = measure.arguments(__doc__, "ffm")
    parser.add_argument("--train", help="libffm text")
    parser.add_argument("--test", help="libffm text, held out")
    parser.add_argument("--examples", type=int, default=200_000, help="of planted data; a quarter as many are held out")
    parser.add_argument("--epochs", type=int, default=4, help="of all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = None
        if not (options.train and options.test):
            options.train, options.test = (os.path.join(folder, name) for name in ("planted.train.ffm", "planted.test.ffm"))
            write_planted(options.train, options.examples, 1)
            known = logistic.quality(*write_planted(options.test, options.examples // 4, 2))
        fm.compare(options, "ffm", PROGRAM, folder, known)


if __name__ == "__main__":
    main()
