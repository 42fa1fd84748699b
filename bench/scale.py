"""Words or examples a second of 1 to 16 workers on hosts that share no memory, and the bytes that they send.

Each host is a network namespace of this machine with a share of a core and a link shaped in proportion, so that the ratio of
arithmetic to network is that of a real one: --like 16@10 (the default) is a machine of 16 cores at 10 Gb/s, of which 0.2 core at
125 Mb/s is a piece. Tasks are placed by the test double of Marathon, one worker of one thread and one server a host; a lone
worker trains without a server. Bytes are those that the hosts' links carried, headers and the job's start included.
Not shaped: latency, which is the one of a virtual link. Needs root, ip(8) and tc(8).
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import measure

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "e2e", "faults"))
import hosts  # noqa: E402  pylint: disable=wrong-import-position

JOB = """\
name: scale
framework: shoal
learn: {learn}
data:
{data}
roles:
{server}  worker: {{replicas: {workers}}}
outputs: {{model: {folder}/model}}
limits: {{gather: 2m}}
"""


def job_file(options, workers, folder):
    """Writes the job file; returns its path."""
    words = options.algorithm == "word2vec"
    learn = {"algorithm": options.algorithm, "epochs": options.epochs, "threads": 1,
             **dict(one.split("=", 1) for one in options.set)}
    data = [f"  train: {{source: {json.dumps(options.train)}, format: {'text' if words else 'libsvm'}, shard_by: worker}}"]
    if options.test:
        data.append(f"  test: {{source: {json.dumps(options.test)}, format: libsvm}}")
    server = f"  server: {{replicas: {workers}, follows: worker}}\n" if workers > 1 else ""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(JOB.format(learn=json.dumps(learn), data="\n".join(data), server=server, workers=workers, folder=folder))
    return path


def train(options, workers, shares):
    """Trains once: {"rate", "bytes_per_item", "seconds", "loss", and the spread of tasks over hosts}."""
    with tempfile.TemporaryDirectory(prefix="shoal-scale-") as folder:
        network = hosts.Hosts(f"bench{os.getpid()}", len(shares), shares, options.megabits)
        try:
            env = {**os.environ, "SHOAL_HOME": os.path.join(folder, "home"), "SHOAL_MARATHON_URL": network.url}
            command = [*network.enter.split(), measure.SHOAL, "run", job_file(options, workers, folder), "--engine", "marathon",
                       "--json"]
            before, begin = network.bytes_sent(), time.monotonic()
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, check=False)
            seconds, sent = time.monotonic() - begin, network.bytes_sent() - before
            if done.returncode != 0:
                sys.exit(f"{workers} workers failed ({done.returncode}):\n{done.stderr[-1500:]}\n{done.stdout[-1500:]}")
            last = json.loads(done.stdout.strip().splitlines()[-1])
            rate = last.get("words_per_second") or last["examples_per_second"]
            items = last.get("words_trained") or last.get("examples_trained") or rate * seconds
            found = {"rate": rate, "bytes_per_item": sent / items, "seconds": seconds, "loss": last.get("loss")}
            if options.pairs:
                found.update(evaluate(options, os.path.join(folder, "model")))
            return found
        finally:
            network.close()


def evaluate(options, model):
    """WordSim's rank correlation and the accuracy of analogies, by `shoal evaluate`."""
    words = [measure.SHOAL, "evaluate", model, "--json", "--pairs", options.pairs]
    words += ["--analogies", options.analogies] if options.analogies else []
    return {"quality": json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)}


def parse():
    parser = measure.arguments(__doc__, "scale")
    parser.set_defaults(rounds=3)
    parser.add_argument("--algorithm", default="word2vec", choices=["word2vec", "logistic", "fm"])
    parser.add_argument("--train", help="text or libsvm; examples/text for word2vec")
    parser.add_argument("--test", help="held-out libsvm of logistic and fm")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the algorithm")
    parser.add_argument("--workers", default="1,2,4,8", help="numbers of workers, separated by commas")
    parser.add_argument("--like", default="16@10", metavar="CORES@GBITS", help="the machine of which each host is a piece")
    parser.add_argument("--share", type=float, help="cores of a host; 0.9 of this machine's by the largest number of workers")
    parser.add_argument("--slow", action="store_true", help="the last of several hosts has half of the share")
    parser.add_argument("--pairs", help="word pairs with human scores: quality too")
    parser.add_argument("--analogies", help="analogies, with --pairs")
    options = parser.parse_args()
    options.counts = [int(word) for word in options.workers.split(",")]
    options.share = options.share or 0.9 * os.cpu_count() / max(options.counts)
    cores, gigabits = (float(word) for word in options.like.split("@"))
    options.megabits = options.share * 1000 * gigabits / cores
    if not options.train:
        texts = sorted(glob.glob(os.path.join(measure.ROOT, "examples", "text", "*.txt*")))
        if options.algorithm != "word2vec" or not texts:
            parser.error(f"--train FILE is needed for {options.algorithm}")
        options.train = texts[0]
    for name in ("train", "test", "pairs", "analogies"):
        if getattr(options, name):
            setattr(options, name, os.path.abspath(getattr(options, name)))
    return options


def main():
    options = parse()
    if os.geteuid() != 0:
        sys.exit("bench scale: hosts are network namespaces and control groups, which only root can make")

    def shares(count):
        return [options.share] * (count - 1) + [options.share / 2 if options.slow and count > 1 else options.share]

    results = measure.interleave([(count, lambda n=count: train(options, n, shares(n))) for count in options.counts],
                                 options.rounds)
    rows, record = [], []
    alone = measure.median([run["rate"] for run in results[options.counts[0]]]) / options.counts[0]
    unit = "words" if options.algorithm == "word2vec" else "examples"
    for count in options.counts:
        runs = results[count]
        rate = measure.median([run["rate"] for run in runs])
        rows.append([count, rate / 1e3, rate / alone, rate / alone / count,
                     measure.median([run["bytes_per_item"] for run in runs]), measure.median([run["seconds"] for run in runs]),
                     measure.median([run["loss"] for run in runs])])
        record.append({"workers": count, "runs": runs})
    lines = measure.table(["workers", f"k {unit}/s", "× one", "of linear", f"bytes / {unit[:-1]}", "whole job, s", "loss"], rows)
    lines += ["", f"Each host: {options.share:.3f} cores, {options.megabits:.0f} Mb/s each way, a piece of {options.like} "
                  f"(cores@Gb/s){'; the last of several has half of that share' if options.slow else ''}. {options.algorithm}, "
                  f"{options.epochs} epoch(s), medians of {options.rounds} rounds."]
    measure.finish("scale", options, {"share": options.share, "megabits": options.megabits, "results": record}, [lines])


if __name__ == "__main__":
    main()
