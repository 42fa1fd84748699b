"""Shared code of the benchmarks: interleaved rounds, medians, tables in Markdown, and the record of a run. Standard library only."""
import argparse
import datetime
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
SHOAL = os.environ.get("SHOAL_BIN") or os.path.join(ROOT, "build", "release", "shoal")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "shoal")


def arguments(doc, prog):
    """A parser with the options of every bench."""
    parser = argparse.ArgumentParser(prog=f"script/bench {prog}", description=doc.split("\n\n", maxsplit=1)[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds; medians are shown")
    parser.add_argument("--record", action="store_true", help=f"write docs/bench/{prog}.json")
    parser.add_argument("--json", action="store_true", help="print the record instead of the tables")
    return parser


def interleave(rows, rounds, progress=True):
    """Runs every row's function once a round; {name: [results]}. A row that fails raises."""
    results = {name: [] for name, _ in rows}
    for turn in range(rounds):
        for name, function in rows:
            if progress:
                print(f"round {turn + 1}/{rounds}: {name}", file=sys.stderr, flush=True)
            results[name].append(function())
    return results


def median(values):
    """The median of the values that are not None; None if there are none."""
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def show(value, digits=2):
    """A number for a table; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}" if isinstance(value, float) else str(value)


def table(header, rows):
    """Markdown lines of a table; cells are shown with show()."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    return lines + ["| " + " | ".join(show(c) for c in row) + " |" for row in rows]


def machine():
    """Processor, cores, memory, kernel: the environment of a measurement."""
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as f:
        memory = int(f.readline().split()[1]) // 1024 // 1024
    return {"cpu": model, "cores": os.cpu_count(), "memory_gib": memory, "kernel": platform.release(),
            "load_before": os.getloadavg()[0]}


def commit():
    """The checkout's commit, with + when there are changes."""
    def git(*words):
        done = subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False)
        return done.stdout.strip()
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "-uno") else "")


def finish(name, options, record, tables):
    """Prints the tables (or the record as JSON); with --record also writes docs/bench/NAME.json."""
    record = {"bench": name, "date": datetime.date.today().isoformat(), "commit": commit(), "machine": MACHINE,
              "command": " ".join(["script/bench", name.split("-sparse", maxsplit=1)[0]] + [shlex.quote(_short(a)) for a in sys.argv[1:]]),
              "tables": tables, **record}
    if options.json:
        print(json.dumps(record, indent=1))
    else:
        for lines in tables:
            print("\n".join(lines) + "\n")
    if options.record:
        folder = os.path.join(ROOT, "docs", "bench")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{name}.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(record, f, indent=1)
            f.write("\n")
        print(f"recorded in {os.path.relpath(path, ROOT)}", file=sys.stderr)


def _short(argument):
    """A path without its folders: records contain no paths of one machine."""
    return os.path.basename(argument) if os.path.isabs(argument) or argument.startswith("..") else argument


MACHINE = machine()
