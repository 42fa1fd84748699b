"""Files for script/bench formats, and what scikit-learn, pandas, pyarrow, pysimdjson and TensorFlow need to read them; runs in the peers'
environment.

    formats_peer.py generate FOLDER ROWS    writes bench.libsvm, .csv, .jsonl and .parquet
    formats_peer.py read PEER FOLDER        prints {"rows", "cpu", "wall", "read"} as JSON, or {"missing": why}
"""
import json
import os
import sys
import time

WIDE = 100  # columns of the Parquet file


def generate(folder, rows):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    random = np.random.default_rng(1)
    with open(f"{folder}/bench.libsvm", "w", encoding="ascii") as f:
        for _ in range(rows):
            names = np.cumsum(random.integers(1, 2000, 30))
            values = random.random(30)
            f.write(f"{random.integers(0, 2)} " + " ".join(f"{n}:{v:.4f}" for n, v in zip(names, values)) + "\n")
    columns = {"label": random.integers(0, 2, rows), "age": random.integers(0, 99, rows), "height": random.normal(1.7, 0.1, rows).round(3),
               "town": np.array([f"town {i}" for i in range(500)])[random.integers(0, 500, rows)]}
    columns |= {f"x{i}": random.normal(0, 1, rows).round(6) for i in range(6)}
    columns |= {f"c{i}": np.array(list("abcdefgh"))[random.integers(0, 8, rows)] for i in range(2)}
    names = list(columns)
    lists = [columns[name].tolist() for name in names]
    with open(f"{folder}/bench.csv", "w", encoding="ascii") as csv, open(f"{folder}/bench.jsonl", "w", encoding="ascii") as lines:
        csv.write(",".join(names) + "\n")
        for row in zip(*lists):
            csv.write(",".join(map(str, row)) + "\n")
            lines.write(json.dumps(dict(zip(names, row))) + "\n")
    wide = {"label": random.integers(0, 2, rows)} | {f"f{i}": random.normal(0, 1, rows) for i in range(WIDE - 21)}
    wide |= {f"t{i}": np.array([f"town {k}" for k in range(500)])[random.integers(0, 500, rows)] for i in range(20)}
    pq.write_table(pa.table(wide), f"{folder}/bench.parquet", row_group_size=rows // 8)


def sklearn(folder):
    from sklearn.datasets import load_svmlight_file
    return lambda: load_svmlight_file(f"{folder}/bench.libsvm")[0].shape[0]


def pandas_csv(folder):
    import pandas
    return lambda: len(pandas.read_csv(f"{folder}/bench.csv"))


def pyarrow_csv(folder):
    from pyarrow import csv
    return lambda: csv.read_csv(f"{folder}/bench.csv", csv.ReadOptions(use_threads=False)).num_rows


def pyarrow_json(folder):
    from pyarrow import json as reader
    return lambda: reader.read_json(f"{folder}/bench.jsonl", reader.ReadOptions(use_threads=False)).num_rows


def simdjson(folder):
    import simdjson as library
    parser = library.Parser()

    def read():
        rows = 0
        with open(f"{folder}/bench.jsonl", "rb") as f:
            for line in f:
                parser.parse(line)
                rows += 1
        return rows
    return read


def json_module(folder):
    def read():
        with open(f"{folder}/bench.jsonl", "rb") as f:
            return sum(1 for line in f if json.loads(line))
    return read


def tensorflow(folder):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def read():
        data = tf.data.TFRecordDataset(f"{folder}/bench.tfrecord").batch(1024)
        return sum(int(batch.shape[0]) for batch in data)
    return read


def tfrecord(folder):
    from tfrecord.reader import tfrecord_iterator
    return lambda: sum(1 for _ in tfrecord_iterator(f"{folder}/bench.tfrecord"))


def pyarrow_parquet(columns):
    def make(folder):
        import pyarrow.parquet as pq
        names = None if columns == 0 else pq.read_schema(f"{folder}/bench.parquet").names[:columns]
        return lambda: pq.read_table(f"{folder}/bench.parquet", columns=names, use_threads=False).num_rows
    return make


PEERS = {"sklearn": sklearn, "pandas": pandas_csv, "pyarrow-csv": pyarrow_csv, "pyarrow-json": pyarrow_json, "simdjson": simdjson,
         "json": json_module, "tensorflow": tensorflow, "tfrecord": tfrecord, "pyarrow-parquet": pyarrow_parquet(0),
         "pyarrow-parquet-5": pyarrow_parquet(5)}


def bytes_read():
    with open("/proc/self/io", encoding="ascii") as f:
        return int(f.readline().split()[1])


def read(peer, folder):
    try:
        function = PEERS[peer](folder)
    except ImportError as missing:
        return {"missing": str(missing)}
    function()  # so that files are cached and libraries loaded
    before, begin, wall = bytes_read(), time.process_time(), time.monotonic()
    rows = function()
    return {"rows": rows, "cpu": time.process_time() - begin, "wall": time.monotonic() - wall, "read": bytes_read() - before}


if __name__ == "__main__":
    if sys.argv[1] == "generate":
        generate(sys.argv[2], int(sys.argv[3]))
    else:
        print(json.dumps(read(sys.argv[2], sys.argv[3])))
