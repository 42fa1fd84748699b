"""Words a second, memory and quality of `shoal train word2vec` beside gensim and fastText, in one run.

Speed: every round trains each row once, in turn, on the same text with the same parameters; medians are shown, and each
row's ratio to gensim with the same number of threads. A row's speed is what its program says of the training itself (the
vocabulary scan and saving are not in it; the seconds of the whole command are shown beside). With --quality: means over
seeds of 5-epoch runs, judged by `shoal evaluate`.
"""
import contextlib
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import flops
import measure
import peers


class Corpus:
    """The text as one plain file in a temporary directory, cut at a line's end to at most `limit` bytes."""

    def __init__(self, given, limit, folder):
        if given is None:
            texts = sorted(glob.glob(os.path.join(measure.ROOT, "examples", "text", "*.txt*")))
            if not texts:
                sys.exit("there is no text in examples/text; name one with --corpus FILE")
        else:
            texts = [given]
        self.name = os.path.basename(given) if given else "examples/text"
        self.path = os.path.join(folder, "corpus.txt")
        left = limit or 1 << 62
        with open(self.path, "wb") as out:
            for text in texts:
                with unpacked(text) as f:
                    while left > 0 and (chunk := f.read(min(left, 1 << 24))):
                        out.write(chunk)
                        left -= len(chunk)
        self._cut_to_line()
        self.bytes = os.path.getsize(self.path)
        with open(self.path, "rb") as f:
            self.words = sum(len(line.split()) for line in f)

    def _cut_to_line(self):
        with open(self.path, "rb+") as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(0, size - (1 << 20)))
            tail = f.read()
            end = tail.rfind(b"\n")
            if end >= 0:
                f.truncate(size - len(tail) + end + 1)


@contextlib.contextmanager
def unpacked(path):
    """The file's bytes as a stream, unpacked if it is a .xz, .gz or .zst."""
    programs = {".xz": "xz", ".gz": "gzip", ".zst": "zstd"}
    program = programs.get(os.path.splitext(path)[1])
    if program is None:
        with open(path, "rb") as f:
            yield f
        return
    with subprocess.Popen([program, "-dc", path], stdout=subprocess.PIPE) as process:
        yield process.stdout
        process.kill()  # the rest is not wanted


class MemoryWatch(threading.Thread):
    """Peak resident size (VmHWM, MiB) of each process of a job, by role, sampled until stop()."""

    def __init__(self, mark):
        super().__init__(daemon=True)
        self.mark, self.peaks, self._done = mark.encode(), {}, threading.Event()

    def run(self):
        while not self._done.wait(0.05):
            for name in filter(str.isdigit, os.listdir("/proc")):
                self._look(name)

    def _look(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                environ = f.read()
            if self.mark not in environ:
                return
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")[1:4]
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                peak = re.search(r"VmHWM:\s+(\d+) kB", f.read())
        except OSError:
            return
        role = b" ".join(words[:2]).decode("ascii", "replace") if words[:1] == [b"learn"] else words[0].decode()
        if peak:
            self.peaks[role] = max(self.peaks.get(role, 0), int(peak.group(1)) / 1024)

    def stop(self):
        self._done.set()
        self.join()
        return self.peaks


def shoal_command(options, corpus, output, workers, servers, threads, epochs, seed):
    """The command line of one training."""
    return [measure.SHOAL, "train", "word2vec", "--data", corpus, "--output", output, "--workers", str(workers), "--servers",
            str(servers), "--threads", str(threads), "--epochs", str(epochs), "--seed", str(seed), "--json",
            "--dim", str(options.dim), "--window", str(options.window),
            *(["--hs"] if options.hs else ["--negative", str(options.negative)]),
            "--sample", str(options.sample), "--min-count", str(options.min_count), "--alpha", str(options.alpha)]


def train_shoal(options, corpus, workers, servers, threads, simd=None, seed=1, epochs=None, output=None):
    """Trains once: {"words_per_second", "seconds", "rss_mib", "loss", "vocabulary"}."""
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        target = output or os.path.join(folder, "vectors")
        env = {**os.environ, "SHOAL_HOME": os.path.join(folder, "home")}
        if simd:
            env["SHOAL_SIMD"] = simd
        watch = MemoryWatch(folder)
        watch.start()
        begin = time.monotonic()
        done = subprocess.run(shoal_command(options, corpus, target, workers, servers, threads, epochs or options.epochs, seed),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, check=False)
        seconds = time.monotonic() - begin
        peaks = watch.stop()
        if done.returncode != 0:
            sys.exit(f"shoal failed ({done.returncode}):\n{done.stderr[-1500:]}\n{done.stdout[-1500:]}")
        last = json.loads(done.stdout.strip().splitlines()[-1])
        with open(os.path.join(target, "vectors.bin"), "rb") as f:
            vocabulary = int(f.readline().split()[0])
        return {"words_per_second": last["words_per_second"], "seconds": seconds, "loss": last.get("loss"),
                "vocabulary": vocabulary, "rss_mib": max(peaks.values(), default=None), "rss_by_role": peaks}


def measure_peak(folder):
    """A function that runs fma_peak and returns its JSON."""
    program = os.path.join(folder, "fma_peak")
    subprocess.run(["g++", "-O2", "-std=c++20", os.path.join(measure.ROOT, "bench", "fma_peak.cc"), "-o", program], check=True)
    return lambda: json.loads(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout)


def speed_rows(options, corpus, available):
    """[(name, function)] of one round, and {name: (threads, the peer of the comparison, instruction set, workers)}."""
    rows, about = [], {}

    def add(name, threads, against, function, simd=None, workers=1):
        rows.append((name, function))
        about[name] = (threads, against, simd, workers)

    for threads in (1, 2):
        add(f"gensim, {threads} threads", threads, None, lambda t=threads: peers.run("gensim", corpus, t, options))
    if "fasttext" in available:
        add("fastText, 2 threads", 2, "gensim, 2 threads", lambda: peers.run("fasttext", corpus, 2, options))
    for threads in (1, 2):
        add(f"shoal, 1 worker, {threads} threads", threads, f"gensim, {threads} threads",
            lambda t=threads: train_shoal(options, corpus, 1, 0, t), "best")
        add(f"shoal, 1 worker, {threads} threads, AVX2", threads, f"gensim, {threads} threads",
            lambda t=threads: train_shoal(options, corpus, 1, 0, t, "avx2"), "avx2")
    add("shoal, 2 workers + 1 server, processes", 2, "gensim, 2 threads", lambda: train_shoal(options, corpus, 2, 1, 1), "best", 2)
    return rows, about


def speed(options, corpus, folder):
    """The speed table: (record, Markdown lines)."""
    available = peers.ensure(optional=not options.no_fasttext)
    rows, about = speed_rows(options, corpus.path, available)
    results = measure.interleave([("FMA peak", measure_peak(folder))] + rows, options.rounds)
    per_word = flops.per_word(corpus.path, options.window, options.negative, options.sample, options.min_count, options.dim)
    speeds = {name: measure.median([r["words_per_second"] for r in results[name]]) for name, _ in rows}
    record, cells = [], []
    for name, _ in rows:
        threads, against, simd, workers = about[name]
        runs = results[name]
        ratio = speeds[name] / speeds[against] if against else None
        peak = measure.median([p.get(simd if simd != "best" else "best") for p in results["FMA peak"]]) if simd else None
        fraction = speeds[name] / threads * per_word / (peak * 1e9) if peak else None
        rss = measure.median([r["rss_mib"] for r in runs])
        vocabulary = runs[0].get("vocabulary")
        bound = (1 + 2 * workers) * 2 * vocabulary * options.dim * 4 / 2**20 + 64 if vocabulary else None
        record.append({"row": name, "words_per_second": [r["words_per_second"] for r in runs], "ratio_to_gensim": ratio,
                       "fraction_of_fma_peak": fraction, "seconds": [r["seconds"] for r in runs], "rss_mib": rss,
                       "rss_bound_mib": bound, "rss_by_role": runs[-1].get("rss_by_role")})
        cells.append([name, speeds[name] / 1e6, speeds[name] / 1e6 / threads, ratio,
                      f"{100 * fraction:.0f} %" if fraction else None, measure.median([r["seconds"] for r in runs]),
                      rss and f"{rss:.0f}", bound and f"{bound:.0f}"])
    lines = measure.table(["program", "M words/s", "per thread", "× gensim", "of FMA peak", "whole command, s",
                           "peak MiB a process", "allowed MiB"], cells)
    inside, outside = speeds["shoal, 1 worker, 2 threads"], speeds["shoal, 2 workers + 1 server, processes"]
    lines += ["", f"2 workers + 1 server reach {100 * outside / inside:.0f} % of the in-process speed. "
                  f"{corpus.name}: {corpus.bytes / 1e6:.1f} MB, {corpus.words:,} words, {options.epochs} epoch(s), "
                  f"medians of {options.rounds} rounds; one word is {per_word / 1e3:.1f} kFLOP."]
    return {"speed": record, "fma_peak_gflops": results["FMA peak"]}, lines


def evaluate(model, options):
    """(WordSim's rank correlation, analogies right in %) of a model directory, by `shoal evaluate`."""
    command = [measure.SHOAL, "evaluate", model, "--json"]
    command += ["--pairs", options.pairs] if options.pairs else []
    command += ["--analogies", options.analogies] if options.analogies else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"shoal evaluate failed:\n{done.stderr}")
    said = json.loads(done.stdout)
    return first_number(said, ("spearman", "correlation")), first_number(said, ("accuracy",))


def first_number(value, names):
    """The first number under one of these names anywhere in a JSON value."""
    if isinstance(value, dict):
        for name in names:
            if isinstance(value.get(name), (int, float)):
                return float(value[name])
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        found = first_number(item, names)
        if found is not None:
            return found
    return None


def quality(options, corpus):
    """The quality table: (record, Markdown lines)."""
    if not options.pairs and not options.analogies:
        sys.exit("--quality needs --pairs FILE or --analogies FILE")
    shapes = [(1, 0, 2), (2, 1, 1), (4, 2, 1), (8, 2, 1)]
    record, cells = [], []
    for workers, servers, threads in shapes:
        name = f"{workers} worker{'s' * (workers > 1)} × {threads} thread{'s' * (threads > 1)}, " + \
            (f"{servers} server{'s' * (servers > 1)}" if servers else "server inside")
        got = []
        for seed in range(1, options.seeds + 1):
            print(f"quality: {name}, seed {seed}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
                model = os.path.join(folder, "model")
                run = train_shoal(options, corpus.path, workers, servers, threads, options.simd, seed, options.quality_epochs,
                                  model)
                got.append((*evaluate(model, options), run["loss"]))
        means = [statistics.mean(c) if None not in c else None for c in zip(*got)]
        spread = [max(c) - min(c) if None not in c else None for c in zip(*got)]
        scale = 100 if means[1] is not None and means[1] <= 1 else 1
        record.append({"row": name, "runs": got})
        cells.append([name, measure.show(means[0], 3), measure.show(spread[0], 3),
                      means[1] and means[1] * scale, spread[1] and spread[1] * scale, measure.show(means[2], 4)])
    lines = measure.table(["job", "word pairs, Spearman", "spread", "analogies %", "spread", "loss"], cells)
    return {"quality": record}, lines + ["", f"{corpus.name}, {corpus.bytes / 1e6:.0f} MB, {options.quality_epochs} epochs, "
                                             f"means of {options.seeds} seeds"]


def main():
    parser = measure.arguments(__doc__, "word2vec")
    parser.add_argument("--corpus", help="a text, plain, .xz, .gz or .zst (default: the one in examples/text)")
    parser.add_argument("--megabytes", type=float, default=0, help="only the first so many MB of it; 0: all")
    parser.add_argument("--epochs", type=int, default=1, help="of the speed runs")
    for name, default in (("dim", 100), ("window", 5), ("negative", 5), ("min-count", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--sample", type=float, default=1e-3)
    parser.add_argument("--alpha", type=float, default=0.025)
    parser.add_argument("--hs", action="store_true", help="hierarchical softmax instead of noise words")
    parser.add_argument("--no-fasttext", action="store_true", help="leave fastText out: it takes minutes a round")
    parser.add_argument("--quality", action="store_true", help="the quality table instead of the speed table")
    parser.add_argument("--seeds", type=int, default=5, help="of the quality runs")
    parser.add_argument("--quality-epochs", type=int, default=5)
    parser.add_argument("--simd", help="instruction set of the quality runs")
    parser.add_argument("--pairs", help="word pairs with human scores, tab-separated (WordSim-353)")
    parser.add_argument("--analogies", help="questions in word2vec's format")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        corpus = Corpus(options.corpus, int(options.megabytes * 1e6), folder)
        record, lines = quality(options, corpus) if options.quality else speed(options, corpus, folder)
    measure.finish("word2vec-quality" if options.quality else "word2vec", options, record, [lines])


if __name__ == "__main__":
    main()
