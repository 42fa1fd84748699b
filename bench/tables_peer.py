"""Tables for script/bench tables, and what scikit-learn, liblinear and Vowpal Wabbit make of them; runs in the peers' environment.

    tables_peer.py generate FOLDER ROWS        writes NAME.SPLIT.train.csv, NAME.SPLIT.test.csv and tables.json
    tables_peer.py train PEER TRAIN TEST LOSS  prints {"loss", "seconds", "rows"} as JSON; the label is the column `label`
"""
import json
import os
import sys
import time
import warnings

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
SPLITS = ((1000, 10), (10_000, 3))  # tables of fewer rows have so many


def packaged():
    """{name: (loss, frame)} of scikit-learn's and statsmodels' own data sets."""
    from sklearn import datasets
    tables = {}

    def sk(name, loss, load):
        data = load(as_frame=True)
        frame = data.frame.rename(columns={"target": "label"})
        if loss != "squared":
            frame["label"] = [str(data.target_names[int(y)]) for y in frame["label"]]
        tables[name] = (loss, frame)
    sk("breast cancer", "logistic", datasets.load_breast_cancer)
    sk("iris", "softmax", datasets.load_iris)
    sk("wine", "softmax", datasets.load_wine)
    sk("digits", "softmax", datasets.load_digits)
    sk("diabetes", "squared", datasets.load_diabetes)
    import statsmodels.api as sm

    def stats(name, module, label, loss, drop=(), as_class=False):
        frame = getattr(sm.datasets, module).load_pandas().data.rename(columns={label: "label"}).drop(columns=list(drop))
        frame = frame.dropna(subset=["label"])
        if as_class:
            frame["label"] = ["c" + str(int(y)) for y in frame["label"]]
        tables[name] = (loss, frame)
    stats("fair (affairs)", "fair", "affairs", "squared")
    stats("engel (food)", "engel", "foodexp", "squared")
    stats("grunfeld (invest)", "grunfeld", "invest", "squared")
    stats("randhie (visits)", "randhie", "mdvis", "poisson")
    stats("anes96 (party)", "anes96", "PID", "softmax", as_class=True)
    stats("modechoice", "modechoice", "choice", "logistic", as_class=True)
    return tables


def planted(loss, rows, seed, wild):
    """Skewed, constant, missing, huge-integer and categorical columns; with `wild` units from 1e-6 to 1e6, shifted."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 8))
    town = random.integers(0, 30, rows)
    effect = np.random.default_rng(99).normal(size=30)
    margin = x @ (0.4 * np.random.default_rng(98).normal(size=8)) + 0.5 * effect[town]
    frame = pd.DataFrame({f"x{i}": x[:, i] for i in range(4)})
    frame["skewed"] = np.exp(1.5 * x[:, 4])
    frame["time"] = np.round(1.6e12 + 1e8 * x[:, 5]).astype(np.int64)
    frame["id_like"] = random.integers(10**17, 10**18, rows)
    frame["constant"] = 7
    frame["gaps"] = np.where(random.random(rows) < 0.2, np.nan, x[:, 6])
    frame["mostly_gaps"] = np.where(random.random(rows) < 0.8, np.nan, x[:, 7])
    frame["town"] = [f"town{t}" for t in town]
    if wild:
        for i, scale in enumerate(10.0 ** np.linspace(-6, 6, 4)):
            frame[f"x{i}"] = scale * (frame[f"x{i}"] + 30 * (i - 1.5))
    if loss == "logistic":
        frame["label"] = np.where(random.random(rows) < 1 / (1 + np.exp(-margin)), "yes", "no")
    elif loss == "squared":
        frame["label"] = np.round(1e5 + 1e4 * (margin + random.normal(size=rows)), 2)
    elif loss == "poisson":
        frame["label"] = random.poisson(np.exp(0.5 + 0.5 * margin))
    else:
        other = x @ (0.4 * np.random.default_rng(97).normal(size=8))
        noise = random.gumbel(size=(rows, 3))
        frame["label"] = np.array(["low", "middle", "high"])[np.argmax(np.stack([margin, other, 0 * other], 1) + noise, 1)]
    return frame


def generate(folder, rows):
    tables = packaged()
    for loss in ("logistic", "squared", "poisson", "softmax"):
        tables[f"planted, {loss}"] = (loss, planted(loss, rows, 1, False))
    tables["planted, logistic, units 1e-6 to 1e6"] = ("logistic", planted("logistic", rows, 1, True))
    listed = []
    for number, (name, (loss, frame)) in enumerate(tables.items()):
        frame = frame[["label"] + [c for c in frame.columns if c != "label"]]
        splits = next((splits for rows, splits in SPLITS if len(frame) < rows), 1)
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(frame))
            cut = int(len(frame) * 0.75)
            for part, picked in (("train", order[:cut]), ("test", order[cut:])):
                frame.iloc[picked].to_csv(os.path.join(folder, f"t{number}.{split}.{part}.csv"), index=False)
        listed.append({"name": name, "file": f"t{number}", "loss": loss, "rows": len(frame), "columns": frame.shape[1] - 1,
                       "splits": splits})
    with open(os.path.join(folder, "tables.json"), "w", encoding="utf-8") as f:
        json.dump(listed, f)


def held_out(loss, truth, predicted, classes):
    """The loss: log-loss of probabilities, mean squared error, mean Poisson deviance."""
    if loss in ("logistic", "softmax"):
        place = {c: i for i, c in enumerate(classes)}
        p = np.clip(np.asarray(predicted, float), 1e-15, 1)
        p = p / p.sum(axis=1, keepdims=True)
        return float(-np.mean([np.log(p[i, place[y]]) if y in place else np.log(1e-15) for i, y in enumerate(truth)]))
    y, m = np.asarray(truth, float), np.asarray(predicted, float)
    if loss == "squared":
        return float(np.mean((y - m) ** 2))
    m = np.maximum(m, 1e-9)
    return float(np.mean(2 * (np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / m), 0) - y + m)))


def pipeline(peer, loss, frame):
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    text = [c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame.columns if c not in text]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), text))
    if loss == "squared":
        model = LinearRegression()
    elif loss == "poisson":
        model = PoissonRegressor(max_iter=300)
    elif peer == "liblinear":
        model = LogisticRegression(solver="liblinear")
        model = OneVsRestClassifier(model) if loss == "softmax" else model
    else:
        model = LogisticRegression(max_iter=300)
    return make_pipeline(columns, model)


def vw_line(label, row, names):
    cells = []
    for name, value in zip(names, row):
        if isinstance(value, str):
            cells.append(f"{name}={value}".replace(" ", "_").replace(":", "_"))
        elif value == value:
            cells.append(f"{name}:{value}".replace(" ", "_"))
    return f"{label} | " + " ".join(cells)


def train_vw(loss, train, test):
    import vowpalwabbit
    names = [c.replace(" ", "_").replace(":", "_").replace("|", "_") for c in train.columns if c != "label"]
    x, u = train.drop(columns="label").values.tolist(), test.drop(columns="label").values.tolist()
    y = train["label"].tolist()
    classes = sorted(set(y)) if loss in ("logistic", "softmax") else []
    place = {c: i for i, c in enumerate(classes)}
    options = {"logistic": "--loss_function logistic --link logistic", "squared": "", "poisson": "--loss_function poisson",
               "softmax": f"--oaa {len(classes)} --loss_function logistic --probabilities"}[loss]
    label_of = {"logistic": lambda c: 2 * place[c] - 1, "softmax": lambda c: place[c] + 1}.get(loss, lambda c: c)
    lines = [vw_line(label_of(c), row, names) for c, row in zip(y, x)]
    begin = time.perf_counter()
    model = vowpalwabbit.Workspace("--quiet " + options)
    for line in lines:
        model.learn(line)
    seconds = time.perf_counter() - begin
    said = [model.predict(vw_line("", row, names)) for row in u]
    if loss == "logistic":
        said = [[1 - p, p] for p in said]
    elif loss == "poisson":
        said = [np.exp(min(p, 50)) for p in said]
    return said, classes, seconds


def train(peer, train_file, test_file, loss):
    a, b = pd.read_csv(train_file), pd.read_csv(test_file)
    begin = time.perf_counter()
    if peer == "vw":
        said, classes, seconds = train_vw(loss, a, b)
    elif peer == "constant":
        classes = sorted(set(a["label"])) if loss in ("logistic", "softmax") else []
        said = ([[float((a["label"] == c).mean()) for c in classes]] if classes else [a["label"].mean()]) * len(b)
        seconds = 0
    else:
        model = pipeline(peer, loss, a.drop(columns="label")).fit(a.drop(columns="label"), a["label"])
        seconds = time.perf_counter() - begin
        classes = list(model.classes_) if loss in ("logistic", "softmax") else []
        said = model.predict_proba(b.drop(columns="label")) if classes else model.predict(b.drop(columns="label"))
    print(json.dumps({"loss": held_out(loss, b["label"].tolist(), said, classes), "seconds": seconds, "rows": len(a)}))


if __name__ == "__main__":
    if sys.argv[1] == "generate":
        generate(sys.argv[2], int(sys.argv[3]))
    else:
        train(*sys.argv[2:6])
