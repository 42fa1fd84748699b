"""The parameter server's transports between two processes, beside ps-lite and the machine's own ceilings in the same run.

Runs ps_speed (src/ps/bench/speed_main.cc) and the same measurements by ps-lite (bench/ps_lite.py) in turns, and shows medians over
the rounds; with --sparse, instead measures a table of 10 M rows (6 GB of memory; recorded as ps-sparse; without ps-lite, whose
store is an unordered_map)."""
import json
import os
import subprocess
import sys

import measure
import ps_lite

# UCX by each of its ways that need no hardware: door → UCX_TLS.
UCX = {"ucx posix": "posix,self", "ucx tcp": "tcp,self"}
DOORS = ["shared memory", "tcp", *UCX, "ps-lite"]


def round_of(process, results):
    """Runs one round of the program and stores its output."""
    process.stdin.write("\n")
    process.stdin.flush()
    for line in process.stdout:
        one = json.loads(line)
        if one["what"] == "end":
            return
        results.setdefault((one["what"], one["unit"]), {}).setdefault(one["door"], []).append(float(one["value"]))
    sys.exit("a program of the bench ended early")


def start(program, rounds, words, **environment):
    """Starts ps_speed, which measures one round for each line of its input."""
    return subprocess.Popen([program, "--rounds", str(rounds), "--step", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env={**os.environ, **environment})


def ucx_is_there(program):
    """True if the program can use UCX on this machine."""
    there = subprocess.run([program, "--rounds", "0", "--ucx", "ucx"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if there.returncode != 0:
        print("without UCX: " + (there.stderr.strip().splitlines() or ["ps_speed ended"])[-1], file=sys.stderr)
    return there.returncode == 0


def run(program, rounds, words, peer):
    """All rounds of ps_speed, over UCX too, and, if there is one, of the peer, interleaved."""
    results = {}
    with start(program, rounds, words) as ours:
        others = [start(program, rounds, [*words, "--ucx", door], UCX_TLS=ways) for door, ways in UCX.items()] \
            if "--sparse" not in words and ucx_is_there(program) else []
        theirs = ps_lite.Peer(peer) if peer else None
        if theirs is not None:
            round_of(theirs.worker, {})  # they have met
            theirs.pause()
        for turn in range(rounds):
            print(f"round {turn + 1}/{rounds}", file=sys.stderr, flush=True)
            for process in [ours, *others]:
                round_of(process, results)
            if theirs is not None:
                theirs.resume()
                round_of(theirs.worker, results)
                theirs.pause()
        if theirs is not None:
            theirs.close()
        for process in others:
            process.stdin.close()
            process.wait()
    return results


def show(results):
    """Two tables: the machine, and the parameter server beside ps-lite."""
    ceilings, cells = [], []
    for (what, unit), doors in results.items():
        medians = {door: measure.median(values) for door, values in doors.items()}
        if "machine" in medians:
            ceilings.append([what, medians["machine"], min(doors["machine"]), max(doors["machine"]), unit])
        else:
            cells.append([what, *[medians.get(door) for door in DOORS + ["client", "server"]], unit])
    return [measure.table(["machine", "median", "least", "most", "unit"], ceilings),
            measure.table(["parameter server", *DOORS, "client", "server", "unit"], cells)]


def main():
    parser = measure.arguments(__doc__, "ps")
    parser.add_argument("--sparse", action="store_true", help="instead, a table of 10 M rows")
    parser.add_argument("--no-peer", action="store_true", help="without ps-lite")
    options = parser.parse_args()
    program = os.path.join(os.environ.get("SHOAL_BENCH_DIR") or os.path.join(measure.ROOT, "build", "release"), "src", "ps",
                           "ps_speed")
    if not os.path.exists(program):
        sys.exit(f"{os.path.relpath(program, measure.ROOT)} is not built: use script/bench ps")
    peer, why = (None, "left out") if options.no_peer or options.sparse else ps_lite.ensure()
    if peer is None:
        print(f"without ps-lite: {why}", file=sys.stderr)
    results = run(program, options.rounds, ["--sparse"] if options.sparse else [], peer)
    measure.finish("ps-sparse" if options.sparse else "ps", options,
                   {"peer": ps_lite.REQUIREMENT if peer else why,
                    "results": [{"what": what, "unit": unit, "rounds": doors} for (what, unit), doors in results.items()]},
                   show(results))


if __name__ == "__main__":
    main()
