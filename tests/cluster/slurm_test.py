"""Jobs on a real Slurm of three nodes (tests/cluster/slurm.sh starts it and runs this): the whole way from `shoal run --engine
slurm` to the verdict, with nodes killed, queues full and controllers lost. Prints what it measured as a table.

    script/test-cluster slurm [--slow | NAME…]

Those of SLOW take minutes each, mostly Slurm's own until it knows that a node is down, and run when named or with --slow.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import documented_commands  # noqa: E402
from harness import PATIENCE, TRAIN, Home, poll_until  # noqa: E402
from slurm_cluster import SCRATCH, WAIT, call, corpus, finish, job_dir, node, queue, quiet, said, start, vectors  # noqa: E402

FIGURES = []  # (what, measured, reach)
SLOW = {"node_killed", "node_killed_batch", "first_node_killed", "time_limit", "time_limit_batch",
        "het_node_killed", "het_first_node_killed", "het_time_limit"}


def test_digest(home):
    """word2vec in deterministic mode gives the bytes that the local engine gives."""
    source = corpus(home)
    results = []
    for engine in ("local", "slurm"):
        out = home.path("out-" + engine)
        path = home.write(engine + ".yaml", TRAIN % (source, out))
        finish(home.start("run", path, "--engine", engine))
        results.append(vectors(out))
    assert results[0] == results[1] and len(results[0]) > 100
    FIGURES.append(("word2vec in deterministic mode", "the local engine's bytes", "the same"))


def test_excluded(home):
    """A task leaves a node that a rule excludes for another one of its allocation; where there is none the job says so."""
    text = ("name: picky\nroles:\n  worker:\n    replicas: 1\n@MAX@    resources: {cpu: 4}\n    restart: {backoff: 100ms}\n"
            "    on_exit: [{code: 79, action: exclude_host}]\n    command: [sh, -c, 'test $SHOAL_ATTEMPT = 1 || exit 79']\n")
    begun = time.monotonic()
    out = finish(start(home, text.replace("@MAX@", "    max: 2\n")))
    left = re.search(r"host (n[1-3]) is excluded for role worker: worker 0 exited with 79", out)
    assert left, out
    FIGURES.append(("a node that a rule excludes, to the end of the job", f"{time.monotonic() - begun:.1f} s", "on another node"))
    quiet()
    out = finish(start(home, text.replace("@MAX@", "")), 1)
    assert "the allocation has no room for it on its other nodes" in out and "excluded for role worker: n" in out, out


def test_start(home):
    """From the command to all tasks running, beside srun of the same tasks."""
    mark = home.path("mark-")
    words = f"date +%s.%N > {mark}$SLURM_PROCID$SHOAL_INDEX; exec sleep 0.2"
    text = "name: four\nframework: generic\nroles: {worker: {replicas: 4, command: [sh, -c, '" + words + "']}}\n"

    def last():
        times = [float(open(mark + str(i), encoding="ascii").read()) for i in range(4)]
        for i in range(4):
            os.unlink(mark + str(i))
        return max(times)

    ours, theirs, batch = [], [], []
    script = home.write("batch.sh", f"#!/bin/sh\nexec srun --ntasks=4 sh -c '{words}'\n")
    for _ in range(15):
        begin = time.time()
        subprocess.run(["srun", "--ntasks=4", "sh", "-c", words], check=True)
        theirs.append(last() - begin)
        quiet()
        begin = time.time()
        subprocess.run(["sbatch", "--quiet", "--wait", "--ntasks=4", "--output=/dev/null", script], check=True, stdout=subprocess.DEVNULL)
        batch.append(last() - begin)
        quiet()
        begin = time.time()
        finish(start(home, text))
        ours.append(last() - begin)
        quiet()
    a, b, c = (statistics.median(times) * 1000 for times in (ours, theirs, batch))
    FIGURES.append(("from `shoal run` to 4 tasks running", f"{a:.0f} ms; srun {b:.0f} ms (x {a / b:.1f}); sbatch with that srun "
                    f"{c:.0f} ms (x {a / c:.2f})", "1.5 x srun"))


def test_pending(home):
    """A job that waits says why; it is cancelled while it does, from its shell and from another."""
    blocker = subprocess.Popen(["srun", "--exclusive", "--nodes=3", "sleep", "300"])
    assert poll_until(lambda: any(state == "RUNNING" for _, state, _ in queue()), WAIT, 0.2)
    late = "name: late\nframework: generic\nroles: {worker: {replicas: 2, command: ['true']}}\n"
    waiting = start(home, late)
    try:
        assert poll_until(lambda: "waits in Slurm's queue" in said(waiting), WAIT, 0.1), said(waiting)
        listed = poll_until(lambda: "waits in Slurm" in home.run("jobs")[1], WAIT, 0.2)
        assert listed, home.run("jobs")[1]
        begin = time.monotonic()
        waiting.send_signal(signal.SIGINT)
        finish(waiting, 130)
        FIGURES.append(("cancelled while pending", f"{time.monotonic() - begin:.1f} s", ""))
        assert poll_until(lambda: len(queue()) == 1, WAIT, 0.2), queue()
        other = start(home, late.replace("late", "later"))
        assert poll_until(lambda: "waits in Slurm's queue" in said(other), WAIT, 0.1), said(other)
        begin = time.monotonic()
        code, out, err = home.run("stop", "later")
        assert code == 0 and "cancelled" in out, out + err
        finish(other, 130)
        FIGURES.append(("`shoal stop` while pending", f"{time.monotonic() - begin:.1f} s", ""))
        assert poll_until(lambda: len(queue()) == 1, WAIT, 0.2), queue()
    finally:
        blocker.terminate()
        blocker.wait()
    assert re.search(r"waits in Slurm's queue \(job \d+\): (Resources|Priority)", said(waiting)), said(waiting)


def test_gpus(home):
    """Each task has the devices that Slurm gave it, and no other's."""
    if "gpu" not in call("sinfo", "--noheader", "--format=%G"):
        return "this machine cannot make the device files of fake GPUs"
    text = """\
name: devices
framework: generic
roles:
  aide: {replicas: 2, command: [sh, -c, 'echo "aide:[$CUDA_VISIBLE_DEVICES]"']}
  worker: {replicas: 4, resources: {gpu: 1}, command: [sh, -c, 'echo "worker:[$CUDA_VISIBLE_DEVICES]"; sleep 1']}
"""
    output = finish(start(home, text))
    assert output.count("aide:[]") == 2, output
    devices = re.findall(r"worker:\[(\d)\]", output)
    assert sorted(devices) == ["0", "0", "1", "1"], output
    return None


def loses_controller(home, text):
    """The worker of the job `alone` ends when the file `go` is there."""
    running = start(home, text)
    assert poll_until(lambda: call("squeue", "--noheader", "--steps").count(".0") and "running" in home.run("jobs")[1], WAIT, 0.2)
    running.kill()
    running.wait()
    assert "unattended" in home.run("jobs")[1], home.run("jobs")[1]
    home.write("go", "")
    assert poll_until(lambda: "succeeded" in home.run("jobs")[1], WAIT, 0.3), home.run("jobs")[1]
    quiet()


def until_go(home):
    return "[sh, -c, 'while [ ! -e %s ]; do sleep 0.1; done; echo done']" % home.path("go")


def test_controller_lost(home):
    """The command is killed; the job goes on, another command finds it, and it ends right."""
    loses_controller(home, f"""\
name: alone
framework: generic
on_controller_loss: keep
roles: {{worker: {{replicas: 2, command: {until_go(home)}}}}}
""")


def test_stop(home):
    """`shoal stop` of another process ends it all."""
    running = start(home, "name: long\nframework: generic\nroles: {worker: {replicas: 3, command: [sleep, '1000']}}\n")
    assert poll_until(lambda: "running" in home.run("jobs")[1], WAIT, 0.2)
    shell = poll_until(lambda: home.run("exec", "long", "worker-1", "--", "sh", "-c", "echo node $SHOAL_INDEX of $SHOAL_ROLE")[1], 10, 0.5)
    assert "node 1 of worker" in shell, shell
    begin = time.monotonic()
    running.send_signal(signal.SIGINT)
    finish(running, 130)
    FIGURES.append(("Ctrl-C to the command's end, 3 tasks", f"{time.monotonic() - begin:.1f} s", ""))
    quiet()


def of_ours(home, *words):
    return [one for one in home.processes() if all(word in " ".join(one.argv) for word in words)]


def attended(home, text):
    """A job of the foreground: its agent runs here, beside an salloc."""
    running = start(home, text)
    assert poll_until(lambda: "running" in home.run("jobs")[1], WAIT, 0.1), said(running)
    assert len(of_ours(home, "slurm agent")) == 1 and len(of_ours(home, "salloc")) == 1, home.processes()
    return running


LONG = "name: long\nframework: generic\nroles: {worker: {replicas: 3, command: [sleep, '%d']}}\n"


def test_salloc_lost(home):
    """What would give the allocation back is killed: the job goes on, and its agent does."""
    running = attended(home, LONG % 2)
    os.kill(of_ours(home, "salloc")[0].pid, signal.SIGKILL)
    finish(running)
    quiet()


def test_agent_lost(home):
    """Nothing is left of a job whose agent is killed."""
    running = attended(home, LONG % 1000)
    os.kill(of_ours(home, "slurm agent")[0].pid, signal.SIGKILL)
    assert "is over" in finish(running, 1)
    quiet()


def test_login_node_lost(home):
    """All that a job has on the login node dies at once: its nodes end it, and give the allocation back."""
    running = attended(home, LONG % 1000)
    begin = time.monotonic()
    doomed = of_ours(home, "read end") + of_ours(home, "slurm agent") + of_ours(home, "srun") + of_ours(home, " coordinator ")
    for one in doomed:
        os.kill(one.pid, signal.SIGSTOP)
    running.kill()
    running.wait()
    for one in doomed:
        os.kill(one.pid, signal.SIGKILL)
    quiet()
    FIGURES.append(("the login node lost: its allocation is free again", f"{time.monotonic() - begin:.1f} s", ""))


def test_controller_killed(home):
    """A job of the foreground ends with its controller."""
    running = attended(home, LONG % 1000)
    running.kill()
    running.wait()
    begin = time.monotonic()
    quiet()
    FIGURES.append(("`kill -9` of `shoal run`: its allocation is free again", f"{time.monotonic() - begin:.1f} s", ""))


def test_comment_of_the_users(home):
    """A job whose comment is not ours is found by its number: by exec, and by a stop after its controller was killed."""
    running = start(home, LONG % 1000 + "slurm: {options: [--comment=project-7]}\non_controller_loss: keep\n")
    assert poll_until(lambda: "running" in home.run("jobs")[1], WAIT, 0.2), said(running)
    shell = poll_until(lambda: home.run("exec", "long", "worker-1", "--", "sh", "-c", "echo on $SHOAL_ROLE")[1], 10, 0.5)
    assert "on worker" in shell, shell
    running.kill()
    running.wait()
    assert "running" in home.run("jobs")[1], home.run("jobs")
    assert "project-7" in call("squeue", "--noheader", "--format=%k")
    code, out, err = home.run("stop", "long")
    assert code == 0, out + err
    quiet()


COUNTER = """\
import os, signal, sys, time
path = sys.argv[1] + os.environ["SHOAL_INDEX"]
count = int(open(path).read()) if os.path.exists(path) else 0
print("begins at", count, flush=True)
def save(*_):
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
while count < int(sys.argv[2]):
    time.sleep(0.1)
    count += 1
    with open(path + ".new", "w") as file: file.write(str(count))
    os.rename(path + ".new", path)
print("counted to", count, flush=True)
"""


KEEP = "on_controller_loss: keep\n"  # a batch job from the beginning: nothing of it is on the login node


def counting(home, upto, more="", keep=""):
    return f"""\
name: counting
framework: generic
roles: {{worker: {{replicas: 2, command: [python3, {home.write("counter.py", COUNTER)}, {home.path("count-")}, '{upto}']}}}}
limits: {{stop_grace: 2s}}
slurm: {{{more}}}
{keep}"""


def batch_node():
    return call("squeue", "--noheader", "--format=%B").split()[0]


def is_down(name):
    return "down" in call("sinfo", "--noheader", "--Node", f"--nodes={name}", "--format=%T")


def is_taken_out(name):
    """Of the job, in the moment in which Slurm sets the node down; sinfo goes on saying "mixed*", sometimes for as long as the job runs."""
    left = call("squeue", "--noheader", "--format=%N").strip()
    return bool(left) and name not in call("scontrol", "show", "hostnames", left).split()


def count_of(home, index=0):
    try:
        return int(open(home.path(f"count-{index}"), encoding="ascii").read())
    except (OSError, ValueError):
        return 0


def lose_node(home, which, keep):
    """Kills a node under a job; seconds from Slurm's word that it is down until the lost task counts again."""
    upto = 900
    running = start(home, counting(home, upto, "nodes: 2", keep))
    assert poll_until(lambda: min(count_of(home, 0), count_of(home, 1)) > 10, WAIT, 0.1), said(running)
    nodes = call("scontrol", "show", "hostnames", call("squeue", "--noheader", "--format=%N").strip()).split()
    first = batch_node() if keep else nodes[0]
    lost = first if which == "first" else [one for one in nodes if one != first][0]
    node("kill", lost)
    before = [count_of(home, 0), count_of(home, 1)]
    still = 0 if which == "first" else 1
    down = poll_until(lambda: (is_down(lost) or is_taken_out(lost)) and time.monotonic(), WAIT * 5, 0.5)
    assert down, call("sinfo")
    at = [count_of(home, i) for i in (0, 1)]
    again = poll_until(lambda: all(count_of(home, i) > at[i] + 1 for i in (0, 1)) and time.monotonic(), WAIT * 2, 0.05)
    node("start", lost)
    assert again, said(running)
    finish(running, seconds=WAIT * 3)
    assert [count_of(home, 0), count_of(home, 1)] == [upto, upto], (before, still)
    quiet()
    return again - down


def test_node_killed(home):
    """A node with a task dies, the first of an attended job: the task goes on in the same allocation."""
    seconds = lose_node(home, "first", "")
    FIGURES.append(("a node killed: after Slurm's word until it goes on", f"{seconds:.1f} s", "15 s"))
    assert seconds < 15 * PATIENCE


def test_node_killed_batch(home):
    """The same with an agent on another node of the allocation."""
    seconds = lose_node(home, "other", KEEP)
    FIGURES.append(("the same of a batch job", f"{seconds:.1f} s", "15 s"))
    assert seconds < 15 * PATIENCE


def test_first_node_killed(home):
    """The node of the coordinator dies: Slurm puts the job into its queue again, and it goes on."""
    seconds = lose_node(home, "first", KEEP)
    FIGURES.append(("the coordinator's node killed: the same", f"{seconds:.1f} s", "15 s"))
    assert seconds < 15 * PATIENCE


def test_time_limit(home):
    """Before its time is over the job saves; it goes on as a batch job."""
    saves_in_time(home, counting(home, 900, SHORT))


def test_time_limit_batch(home):
    """The same of a batch job, which Slurm puts into its queue again."""
    saves_in_time(home, counting(home, 900, SHORT, KEEP))


SHORT = "time: 1m, save_before: 55s"


def saves_in_time(home, text):
    running = start(home, text)
    assert poll_until(lambda: "nearly over" in said(running), WAIT * 2, 0.2), said(running)
    output = finish(running, seconds=WAIT * 6)
    assert [count_of(home, 0), count_of(home, 1)] == [900, 900], output
    begins = [int(one) for one in re.findall(r"begins at (\d+)", output)]
    assert any(one > 0 for one in begins), output
    quiet()


# ---- heterogeneous allocations (ADR 89): the first component is n1, the second has n2 and n3 ----

HET = ("    slurm: {partition: small}\n", "    slurm: {partition: big}\n")


def components():
    return call("squeue", "--noheader", "--format=%i %N").split("\n")


def test_het_digest(home):
    """word2vec with its server and its workers in components of their own gives the local engine's bytes."""
    source = corpus(home)
    local = home.path("out-local")
    finish(home.start("run", home.write("local.yaml", TRAIN % (source, local)), "--engine", "local"))
    out = home.path("out-slurm")
    apart = TRAIN.replace("server: {replicas: 1,", "server: {replicas: 1, slurm: {partition: small},").replace(
        "worker: {replicas: 2}", "worker: {replicas: 2, slurm: {partition: big}}")
    path = home.write("slurm.yaml", apart % (source, out))
    plan = home.run("plan", path, "--engine", "slurm")[1]
    assert plan.count("#SBATCH hetjob") == 1 and "--het-group=0" in plan and "--het-group=1" in plan and "salloc" not in plan, plan
    finish(home.start("run", path, "--engine", "slurm"))
    assert vectors(out) == vectors(local) and len(vectors(local)) > 100
    FIGURES.append(("the same, server and workers in components of their own", "the local engine's bytes", "the same"))


def apart(command, name="apart", more=""):
    return (f"name: {name}\nframework: generic\n{more}roles:\n  aide:\n    replicas: 1\n    follows: worker\n    command: [sleep, '1000']\n{HET[0]}"
            f"  worker:\n    replicas: 2\n    command: {command}\n{HET[1]}")


def test_het_stop(home):
    """Tasks are where their roles asked to be; a command reaches them; Ctrl-C ends it all."""
    running = start(home, apart("[sleep, '1000']"))
    assert poll_until(lambda: "running" in home.run("jobs")[1], WAIT, 0.2), said(running)
    assert sorted(one.split("+")[1] for one in components() if one) in (["0 n1", "1 n2"], ["0 n1", "1 n3"]), components()
    for role, index in (("aide", 0), ("worker", 1)):
        echo = ("exec", "apart", f"{role}-{index}", "--", "sh", "-c", "echo node $SHOAL_INDEX of $SHOAL_ROLE")
        shell = poll_until(lambda words=echo: home.run(*words)[1], 10, 0.5)
        assert shell and f"node {index} of {role}" in shell, shell
    running.send_signal(signal.SIGINT)
    finish(running, 130)
    quiet()


def test_het_pending(home):
    """One that waits says why; it leaves the queue whole."""
    blocker = subprocess.Popen(["srun", "--exclusive", "--partition=small", "sleep", "300"])
    assert poll_until(lambda: any(state == "RUNNING" for _, state, _ in queue()), WAIT, 0.2)
    waiting = start(home, apart("['true']"))
    try:
        assert poll_until(lambda: re.search(r"waits in Slurm's queue \(job \d+\): (Resources|Priority)", said(waiting)), WAIT, 0.1), said(waiting)
        waiting.send_signal(signal.SIGINT)
        finish(waiting, 130)
        assert poll_until(lambda: len(queue()) == 1, WAIT, 0.2), queue()
    finally:
        blocker.terminate()
        blocker.wait()


def test_het_controller_lost(home):
    """The same of a job of two components."""
    loses_controller(home, apart(until_go(home), "alone", KEEP))


def counting_apart(home, upto, more=""):
    counter = home.write("counter.py", COUNTER)
    return apart(f"[python3, {counter}, {home.path('count-')}, '{upto}']", "counting", f"limits: {{stop_grace: 2s}}\nslurm: {{{more}}}\n")


def lose_component(home, lost):
    """Kills the one node of a component; seconds from Slurm's word (or the node's return, where none else will do) until its job counts."""
    upto = 700
    running = start(home, counting_apart(home, upto))
    assert poll_until(lambda: min(count_of(home, 0), count_of(home, 1)) > 10, WAIT, 0.1), said(running)
    lost = lost or [one.split()[1] for one in components() if "+1 " in one][0]
    node("kill", lost)
    # sinfo may say "mixed*" of it for as long as the rest of the job runs.
    torn = poll_until(lambda: [state for _, state, _ in queue()] != ["RUNNING", "RUNNING"], WAIT * 5, 0.1)
    assert torn, call("sinfo")
    at = [count_of(home, i) for i in (0, 1)]
    down = time.monotonic()
    if lost == "n1":
        node("start", lost)
    again = poll_until(lambda: all(count_of(home, i) > at[i] + 1 for i in (0, 1)) and time.monotonic(), WAIT * 2, 0.05)
    if lost != "n1":
        node("start", lost)
    assert again, said(running) + call("squeue", "--states=all")
    finish(running, seconds=WAIT * 3)
    assert [count_of(home, 0), count_of(home, 1)] == [upto, upto]
    quiet()
    return again - down


def test_het_node_killed(home):
    """The node of the second component dies: the job goes on in another allocation."""
    FIGURES.append(("heterogeneous: a node killed, the same", f"{lose_component(home, ''):.1f} s", "15 s"))


def test_het_first_node_killed(home):
    """The node of the first component dies, on which the coordinator is."""
    FIGURES.append(("heterogeneous: the coordinator's node killed and back, the same", f"{lose_component(home, 'n1'):.1f} s", "15 s"))


def test_het_time_limit(home):
    """Before its time is over the job saves; Slurm puts all of it into its queue again."""
    saves_in_time(home, counting_apart(home, 900, SHORT))


def test_refusals(home):
    """What Slurm will not take is said in one sentence."""
    text = "name: no\nframework: generic\nroles: {worker: {replicas: 1, command: ['true']}}\nslurm: {partition: nope}\n"
    output = finish(start(home, text), 1)
    assert "invalid partition specified: nope" in output, output
    path = home.write("job.yaml", text)
    plan = home.run("plan", path, "--engine", "slurm")[1]
    assert "#SBATCH --partition=nope" in plan and "srun" in plan, plan
    gone = subprocess.run([home.binary, "run", path, "--engine", "slurm"], env={**home.environ(), "PATH": "/nowhere"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert "there is no sbatch here" in gone.stdout, gone.stdout


def test_suspended(home):
    """A job that Slurm has suspended is no loss and says so; `shoal stop` and Ctrl-C end it although its tasks hear nothing."""
    for stop in ("stop", "Ctrl-C"):
        running = start(home, LONG % 1000 + "limits: {stop_grace: 2s}\n")
        assert poll_until(lambda: "running" in home.run("jobs")[1], WAIT, 0.2), said(running)
        number = queue()[0][0]
        call("scontrol", "suspend", number)
        assert poll_until(lambda: "suspended" in said(running), WAIT, 0.2), (queue(), said(running))
        begin = time.monotonic()
        if stop == "stop":
            code, out, err = home.run("stop", "long")
            assert code == 0, out + err
        else:
            running.send_signal(signal.SIGINT)
        finish(running, 130)
        FIGURES.append((f"{stop} of a suspended job", f"{time.monotonic() - begin:.1f} s", ""))
        assert "cancelled" in home.run("jobs", "--all")[1], home.run("jobs", "--all")
        quiet()


def test_documented_commands(_):
    """As printed."""
    ran = documented_commands.run_all("slurm")
    FIGURES.append(("documented commands as printed", str(len(ran)), ""))


def main():
    slow = "--slow" in sys.argv
    chosen = [word for word in sys.argv[1:] if word != "--slow"]
    passed, failed = 0, 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (chosen and name[5:] not in chosen):
            continue
        if name[5:] in SLOW and not slow and not chosen:
            continue
        begin = time.monotonic()
        with Home() as home:
            os.chmod(home.root, 0o755)
            try:
                quiet()
                why = test(home)
                print(f"{'skipped' if why else 'ok':8} {name[5:]:20} {time.monotonic() - begin:5.1f} s  {why or ''}", flush=True)
                passed += not why
            except (AssertionError, subprocess.SubprocessError, OSError, ValueError) as error:
                failed += 1
                print(f"FAILED   {name[5:]:20} {time.monotonic() - begin:5.1f} s\n{error}", flush=True)
                log = os.path.join(job_dir(home), "engine") if os.path.isdir(os.path.join(home.home, "jobs")) else ""
                for file in ("slurm.log", "events.jsonl", "coordinator-0.log"):
                    print(f"-- {file}\n{call('tail', '-n', '30', os.path.join(log, file))}", flush=True)
                call("scancel", "--user=root")
                for one in ("n1", "n2", "n3"):
                    if is_down(one):
                        node("start", one)
    print()
    for what, measured, reach in FIGURES:
        print(f"| {what} | {measured} | {reach} |")
    print(json.dumps({"figures": FIGURES}) if "--json" in chosen else "")
    print(f"slurm: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if not SCRATCH:
        print("skipped: script/test-cluster slurm starts the cluster that this needs")
        sys.exit(77)
    sys.exit(main())
