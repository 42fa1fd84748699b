"""What containers cost: the same jobs as processes, in Docker containers with the host's network, and with a network of the job.

`script/bench containers` starts a Docker daemon for it. Jobs: 4 tasks of `true` (from command to exit), word2vec and logistic
regression with 2 workers and a server (words/s and examples/s as the job reports them). Ratios are medians of interleaved rounds
over those of processes.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import measure

ENGINES = {"processes": ("local", {}), "Docker, host's network": ("docker", {"network": "host"}),
           "Docker, network of the job": ("docker", {"network": "job"})}
IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "")


def job(kind, container, folder):
    """The job as JSON, which is YAML."""
    settings = {"container": container} if container else {}
    if kind == "true":
        return {"name": "four-true", "roles": {"worker": {"replicas": 4, "command": ["true"]}},
                **({"image": IMAGE} if container else {}), **settings}
    learn = {"word2vec": {"algorithm": "word2vec", "dim": 100, "epochs": 2}, "logistic": {"algorithm": "logistic", "epochs": 3}}[kind]
    data = {"source": os.path.join(folder, {"word2vec": "text.txt", "logistic": "train.libsvm"}[kind])}
    if kind == "logistic":
        data["format"] = "libsvm"
    return {"name": kind, "framework": "shoal", "learn": learn, "data": {"train": data},
            "roles": {"server": {"replicas": 1}, "worker": {"replicas": 2, "resources": {"cpu": 1}}},
            "outputs": {"model": os.path.join(folder, "model")}, **settings}


def run(kind, engine, container, folder):
    """Seconds of the command for `true`, else the rate that the job reports."""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job(kind, container, folder), file)
    environment = {**os.environ, "SHOAL_HOME": os.path.join(folder, "home")}
    begin = time.monotonic()
    done = subprocess.run([measure.SHOAL, "run", path, "--engine", engine], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment, check=False)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"shoal run --engine {engine} failed ({done.returncode}):\n{done.stdout[-2000:]}")
    if kind == "true":
        return seconds
    jobs = subprocess.run([measure.SHOAL, "jobs", "--json"], stdout=subprocess.PIPE, text=True, env=environment, check=True)
    result = json.loads(jobs.stdout.splitlines()[0])["result"]
    return result["words_per_second" if kind == "word2vec" else "examples_per_second"]


def write_data(folder, megabytes):
    """Text and examples by Zipf's law, from a fixed seed."""
    source = random.Random(1)
    words = [f"w{i}" for i in range(20_000)]
    weights = [1 / (i + 1) for i in range(len(words))]
    with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as text:
        while text.tell() < megabytes << 20:
            text.write(" ".join(source.choices(words, weights, k=1000)) + "\n")
    with open(os.path.join(folder, "train.libsvm"), "w", encoding="utf-8") as examples:
        for _ in range(megabytes * 4000):
            features = sorted(set(source.choices(range(1, 20_001), weights, k=30)))
            examples.write(f"{sum(features) % 2} " + " ".join(f"{f}:1" for f in features) + "\n")


def main():
    parser = measure.arguments(__doc__, "containers")
    parser.add_argument("--megabytes", type=int, default=20, help="size of the text")
    options = parser.parse_args()
    if not IMAGE:
        sys.exit("containers: SHOAL_TEST_IMAGE names no image with `true`; run script/bench containers as root, which starts a daemon")
    with tempfile.TemporaryDirectory(prefix="shoal-containers") as folder:
        write_data(folder, options.megabytes)
        rows = [((kind, name), lambda kind=kind, engine=engine, container=container: run(kind, engine, container, folder))
                for kind in ("true", "word2vec", "logistic") for name, (engine, container) in ENGINES.items()]
        results = measure.interleave(rows, options.rounds)
    medians = {row: measure.median(values) for row, values in results.items()}
    lines = []
    for kind, unit, digits in (("true", "4 × `true`, s", 3), ("word2vec", "word2vec, words/s", 0), ("logistic", "logistic, examples/s", 0)):
        base = medians[(kind, "processes")]
        for name in ENGINES:
            value = medians[(kind, name)]
            lines.append([unit, name, measure.show(float(value), digits), measure.show(value / base, 2)])
    measure.finish("containers", options, {"medians": {" / ".join(row): value for row, value in medians.items()}},
                   [measure.table(["job", "as", "median", "of processes"], lines)])


if __name__ == "__main__":
    main()
