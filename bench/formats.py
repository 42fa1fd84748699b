"""script/bench formats: the readers of libsvm, CSV, JSON lines, TFRecord and Parquet beside those of other libraries, a core.

Rates are MB of the file, and rows, for a second of CPU time (user and system) of one thread, which other work of the machine disturbs
less than wall time; rounds are interleaved. Peers are installed from PyPI into ~/.cache/shoal/format-peers, or --python names an
environment that has them; those that are missing are left out.
"""
import json
import os
import subprocess
import sys

import measure

PACKAGES = ["numpy", "pyarrow", "pandas", "scikit-learn", "pysimdjson", "tfrecord"]
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "formats_peer.py")
# What is read: the file's ending, our benchmarks, the peers.
ROWS = [("libsvm", "libsvm", ["Examples/libsvm", "Batches/libsvm"], ["sklearn"]),
        ("CSV", "csv", ["Examples/csv", "Batches/csv"], ["pandas", "pyarrow-csv"]),
        ("JSON lines", "jsonl", ["Examples/jsonl", "Batches/jsonl"], ["pyarrow-json", "simdjson", "json"]),
        ("TFRecord", "tfrecord", ["Records/tfrecord", "Examples/tfrecord", "Batches/tfrecord"], ["tensorflow", "tfrecord"]),
        ("Parquet", "parquet", ["Examples/parquet", "Batches/parquet"], ["pyarrow-parquet"]),
        ("Parquet, 5 of 100 columns", "parquet", ["Batches/parquet_5_columns"], ["pyarrow-parquet-5"]),
        ("gate's filter, CSV", "csv", ["Filter/csv"], []),
        ("gate's filter, JSON lines", "jsonl", ["Filter/jsonl"], []),
        ("gate's filter, Parquet", "parquet", ["Filter/parquet"], [])]


def environment():
    folder = os.path.join(measure.CACHE, "format-peers")
    python = os.path.join(folder, "bin", "python3")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def ours(program, folder, name):
    """{"rows", "cpu", "wall", "read"} of one pass."""
    done = subprocess.run([program, f"--benchmark_filter=^{name}$", "--benchmark_format=json", "--benchmark_min_time=0.2"],
                          env={**os.environ, "SHOAL_BENCH_DATA": folder}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found = json.loads(done.stdout)["benchmarks"][0]
    if "error_message" in found:
        raise RuntimeError(f"{name}: {found['error_message']}")
    cpu, wall = found["cpu_time"] / 1e9, found["real_time"] / 1e9
    return {"rows": found["items_per_second"] * cpu, "cpu": cpu, "wall": wall, "read": found.get("bytes_read")}


def peer(python, folder, name):
    done = subprocess.run([python, "-B", PEER, "read", name, folder], stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    return None if "missing" in result else result


def main():
    parser = measure.arguments(__doc__, "formats")
    parser.add_argument("--rows", type=int, default=100_000, help="of each file")
    parser.add_argument("--folder", default=os.path.join(measure.CACHE, "formats"), help="of the files, made if they are not there")
    parser.add_argument("--python", help="the peers' interpreter")
    parser.add_argument("--only", default="", help="only names that contain this")
    options = parser.parse_args()
    python = options.python or environment()
    program = os.path.join(os.environ.get("SHOAL_BENCH_DIR", os.path.join(measure.ROOT, "build", "release")), "src", "data", "data_bench")
    os.makedirs(options.folder, exist_ok=True)
    if not os.path.exists(f"{options.folder}/bench.parquet"):
        subprocess.run([python, "-B", PEER, "generate", options.folder, str(options.rows)], check=True)
    if not os.path.exists(f"{options.folder}/bench.tfrecord"):
        subprocess.run([measure.SHOAL, "data", "convert", f"{options.folder}/bench.jsonl", f"{options.folder}/bench.tfrecord"], check=True)
    rows = []
    for title, _, own, peers in ROWS:
        if options.only not in title:
            continue
        rows += [((title, name), lambda name=name: ours(program, options.folder, name)) for name in own]
        rows += [((title, name), lambda name=name: peer(python, options.folder, name)) for name in peers]
    results = measure.interleave([(name, function) for name, function in rows], options.rounds)
    shown, record = [], []
    for title, ending, own, peers in ROWS:
        size = os.path.getsize(f"{options.folder}/bench.{ending}")
        for name in own + peers:
            found = [r for r in results.get((title, name), []) if r is not None]
            if not found:
                continue
            cpu = measure.median([r["cpu"] for r in found])
            wall = measure.median([r["wall"] for r in found])
            count = found[0]["rows"]
            line = {"what": title, "reader": name, "megabytes": size / 1e6, "mb_per_cpu_second": size / 1e6 / cpu,
                    "rows_per_cpu_second": count / cpu, "wall": wall, "read": found[0]["read"]}
            record.append(line)
            shown.append([title, name, round(line["mb_per_cpu_second"], 1), round(line["rows_per_cpu_second"]),
                          round(wall / cpu, 2), None if found[0]["read"] is None else round(found[0]["read"] / 1e6, 2)])
    header = ["what", "reader", "MB/s of CPU", "rows/s of CPU", "wall / CPU", "MB read"]
    measure.finish("formats", options, {"rows": record}, [("Readers, one thread", measure.table(header, shown))])


if __name__ == "__main__":
    main()
