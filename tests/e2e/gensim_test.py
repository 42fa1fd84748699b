"""gensim loads what we save, in both formats, and finds the same neighbours as `shoal nearest`.

Skipped (77) where the peers' environment is missing; script/test makes it when PyPI can be reached.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults"), os.path.join(HERE, "..", "..", "bench")]
import harness  # noqa: E402
import peers  # noqa: E402
import planted  # noqa: E402

_LOAD = """\
import json, sys
from gensim.models import KeyedVectors
folder, word = sys.argv[1:]
loaded = [KeyedVectors.load_word2vec_format(f"{folder}/vectors.{kind}", binary=kind == "bin") for kind in ("bin", "txt")]
print(json.dumps([{"words": len(v), "dim": v.vector_size, "first": v.index_to_key[:50],
                   "vector": [float(x) for x in v[word]],
                   "nearest": [w for w, _ in v.most_similar(word, topn=5)]} for v in loaded]))
"""


def main():
    if not peers.has("gensim"):
        print("skipped: gensim is not installed; `script/bench word2vec` or script/test with a network installs it")
        return 77
    with harness.Home() as home:
        corpus, output = home.path("corpus.txt"), home.path("vectors")
        planted.write_corpus(corpus, 200_000)
        with open(corpus, "a", encoding="utf-8") as f:
            f.write("naïve 日本語 word\n" * 20)
        code, out, err = home.run("train", "word2vec", "--data", corpus, "--output", output, "--dim", "24", "--epochs", "10",
                                  "--sample", "0")
        assert code == 0, out + err
        done = subprocess.run([peers.PYTHON, "-c", _LOAD, output, "g0w0"], stdout=subprocess.PIPE, text=True, check=True)
        binary, text = json.loads(done.stdout.splitlines()[-1])
        assert binary["words"] == text["words"] == planted.GROUPS * planted.GROUP_SIZE + planted.FILLERS + 3, binary["words"]
        assert binary["dim"] == text["dim"] == 24
        assert binary["first"] == text["first"]
        assert max(abs(a - b) for a, b in zip(binary["vector"], text["vector"])) < 1e-4
        assert sum(w.startswith("g0w") for w in binary["nearest"]) >= 4, binary["nearest"]
        code, out, err = home.run("nearest", output, "g0w0", "--json")
        assert code == 0, err
        assert binary["nearest"][0] in out and binary["nearest"][1] in out, (binary["nearest"], out)
    print("gensim reads vectors.bin and vectors.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
