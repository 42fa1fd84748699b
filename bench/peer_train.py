"""Trains one peer's skip-gram model and prints its speed as one JSON object. Run by peers.py, with the peers' Python."""
import argparse
import json
import os
import re
import resource
import sys
import tempfile
import time


def train_gensim(o):
    """gensim in its fastest mode (corpus_file: no Python object a word). The vocabulary scan is not in the speed."""
    from gensim.models import Word2Vec
    model = Word2Vec(vector_size=o.dim, window=o.window, negative=0 if o.hs else o.negative, hs=int(o.hs),
                     sample=o.sample, min_count=o.min_count, sg=1, workers=o.threads, alpha=o.alpha, min_alpha=o.alpha * 1e-4,
                     seed=o.seed, sorted_vocab=1)
    model.build_vocab(corpus_file=o.corpus)
    begin = time.monotonic()
    _, words = model.train(corpus_file=o.corpus, total_examples=model.corpus_count,
                           total_words=model.corpus_total_words, epochs=o.epochs)
    seconds = time.monotonic() - begin
    if o.save:
        model.wv.save_word2vec_format(o.save, binary=True)
    return words / seconds


def train_fasttext(o):
    """fastText without subwords, which is word2vec. It reports words/s/thread itself, on standard error."""
    import fasttext
    with tempfile.TemporaryFile() as log:
        saved = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            fasttext.train_unsupervised(o.corpus, model="skipgram", dim=o.dim, ws=o.window, neg=o.negative, t=o.sample,
                                        loss="hs" if o.hs else "ns",
                                        minCount=o.min_count, epoch=o.epochs, thread=o.threads, lr=o.alpha, minn=0, maxn=0,
                                        verbose=2)
        finally:
            os.dup2(saved, 2)
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
    speeds = [int(s) for s in re.findall(r"words/sec/thread:\s*(\d+)", text)]
    if not speeds:
        sys.exit(f"fastText printed no speed: {text[-300:]}")
    return speeds[-1] * o.threads


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=("gensim", "fasttext"))
    parser.add_argument("corpus")
    for name, default in (("threads", 1), ("dim", 100), ("window", 5), ("negative", 5), ("min-count", 5), ("epochs", 1),
                          ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--sample", type=float, default=1e-3)
    parser.add_argument("--alpha", type=float, default=0.025)
    parser.add_argument("--hs", action="store_true")
    parser.add_argument("--save")
    options = parser.parse_args()
    begin = time.monotonic()
    speed = (train_gensim if options.peer == "gensim" else train_fasttext)(options)
    print(json.dumps({"words_per_second": speed, "seconds": time.monotonic() - begin,
                      "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
