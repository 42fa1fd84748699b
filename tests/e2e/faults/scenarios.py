"""The jobs that the fault suite runs, and what a right end of each looks like."""
import contextlib
import json
import os
import signal

import harness
import planted

ROLES = ("worker", "server", "launcher", "coordinator", "controller", "controller-keep")
# Others than the job's own processes stop something: SIGTERM to a launcher, or to all processes of a task, as an engine's
# eviction or a person sends it; SIGSTOP for longer than anybody is waited for. Only with --only.
TERMINATED = ("term-launcher", "term-task")
PAUSED = ("stop-worker", "stop-server", "stop-launcher", "stop-coordinator", "stop-controller")
OTHERS = TERMINATED + PAUSED
STOP_GRACE, CONTROLLER_LOSS, COORDINATOR_TIMEOUT, GATHER = 2.0, 5.0, 10.0, 20.0
CONTROLLER_START = 10.0  # how long a coordinator waits for the first word of its controller

_WORD2VEC = """\
name: faults-word2vec
framework: shoal
learn: {{algorithm: word2vec, dim: 32, window: 5, negative: 5, min_count: 1, sample: 0, epochs: {epochs}, threads: 1}}
data:
  train: {{source: "{corpus}", format: text, shard_by: worker}}
roles:
  server: {{replicas: 2, follows: worker}}
  worker: {{replicas: 3, restart: {{when: transient, limit: 3, scope: task}}}}
checkpoint: {{every: 500ms, keep: 2}}
limits: {{gather: 20s, deadline: 2m, stop_grace: 2s, coordinator_timeout: 10s}}
on_controller_loss: {loss}
outputs: {{model: "{output}"}}
"""

# Every program leaves a grandchild in a session of its own, which nobody will clean up for it.
_GENERIC = """\
name: faults-generic
framework: generic
roles:
  server:
    replicas: 2
    follows: worker
    command: [sh, -c, "setsid sleep 3600 & exec sleep 3600"]
  worker:
    replicas: 2
    command: [sh, -c, "setsid sleep 3600 & i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); echo line $i; sleep 0.1; done"]
limits: {{gather: 20s, deadline: 2m, stop_grace: 2s, coordinator_timeout: 10s}}
on_controller_loss: {loss}
"""


class Scenario:
    """One kind of job in one Home. `baseline` (seconds, purity, loss) comes from runs without faults."""

    def __init__(self, kind, home, victim, epochs):
        self.kind, self.home, self.victim = kind, home, victim
        self.output = home.path("vectors") if kind == "word2vec" else None
        # A job that is to be stopped for its controller's loss must not be over before that is noticed.
        longer = 8 if victim == "controller" else 1
        loss = "keep" if victim == "controller-keep" else "stop"
        if kind == "word2vec":
            corpus = home.path("corpus.txt")
            planted.write_corpus(corpus, 400_000)
            text = _WORD2VEC.format(corpus=corpus, output=self.output, epochs=epochs * longer, loss=loss)
        else:
            text = _GENERIC.format(loss=loss, rounds=20 * longer)
        self.file = home.write("job.yaml", text)

    def start(self):
        return self.home.start("run", self.file)

    @property
    def kind_of_victim(self):
        """What kind of process is hit: worker, server, launcher, …"""
        if self.victim in OTHERS:
            return self.victim.split("-")[1].replace("task", "launcher")
        return self.victim.split("-")[0]

    def victims(self):
        """The processes that are what this run kills, now."""
        kind = self.kind_of_victim
        found = [p for p in self.home.processes() if p.kind == kind]
        # A program is the child of a launcher (or of its namespace's first process), not what it started itself; and any
        # process that has just forked has a copy with its own arguments, whose death changes nothing.
        of_kind = {p.pid for p in found}
        return [p for p in found if p.ppid not in of_kind]

    def hit(self, victim, seconds):
        """Does to one of the victims what this run is about; ProcessLookupError if it has ended."""
        if self.victim in PAUSED:
            os.kill(victim.pid, signal.SIGSTOP)
            harness.poll_until(lambda: harness.read_process(victim.pid) is None, seconds, pause=0.1)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGCONT)
        elif self.victim in TERMINATED:
            tree = [victim.pid]
            for one in sorted(self.home.processes(), key=lambda p: p.pid) if self.victim == "term-task" else ():
                if one.ppid in tree:
                    tree.append(one.pid)
            for pid in reversed(tree):
                os.kill(pid, signal.SIGTERM)
        else:
            os.kill(victim.pid, signal.SIGKILL)

    def quality(self):
        """(purity, loss) of the saved model; raises OSError, ValueError, … when it is not whole."""
        with open(os.path.join(self.output, "model.json"), encoding="utf-8") as f:
            model = json.load(f)
        vectors = harness.read_vectors(os.path.join(self.output, "vectors.bin"))
        curve = model.get("loss")  # [[words, loss], …]
        return planted.purity(vectors), float(curve[-1][1]) if curve else None

    def is_true_reason(self, verdict):
        """True if a failed job's reason names what was killed or how."""
        reason = str(verdict.get("reason", "")).lower()
        return any(word in reason for word in (self.kind_of_victim, "signal 9", "sigkill", "killed", "lost"))

    def judge(self, baseline, exit_code):
        """Sentences about what is wrong with the end of the job, and whether it succeeded."""
        verdict = self.home.verdict()
        state = verdict.get("state")
        if state is None:
            # A controller that was killed before its coordinator had started: the store's next reader ends the job.
            told = self.victim.startswith("controller") and "controller was killed" in self.home.stored_reason()
            return ([] if told else ["no verdict.json"]), False
        if self.victim == "controller" and exit_code == -9:
            return self._judge_loss_of_controller(verdict, baseline), state == "succeeded"
        wrong = []
        # A launcher that does not go on before limits.gather has passed is truly missed.
        missed = self.victim == "stop-launcher" and "did not join within" in str(verdict.get("reason"))
        if self.victim in PAUSED and state != "succeeded" and not missed:
            wrong.append(f"{state} though nothing died: {verdict.get('reason')}")
        if state == "failed" and not missed and not self.is_true_reason(verdict):
            wrong.append(f"failed for another reason than the true one: {verdict.get('reason')}")
        if state == "cancelled":
            wrong.append(f"cancelled: {verdict.get('reason')}")
        if exit_code not in (-9, 0 if state == "succeeded" else 1):
            wrong.append(f"exit code {exit_code} of a job that {state}")
        return wrong + self._judge_model(state, baseline), state == "succeeded"

    def _judge_loss_of_controller(self, verdict, baseline):
        """The job was stopped and says why; or it was as good as over and has a whole model."""
        state, reason = verdict.get("state"), str(verdict.get("reason", ""))
        told = state == "succeeded" or (state in ("cancelled", "failed") and "controller" in reason)
        return ([] if told else [f"{state} after the controller's loss: {reason}"]) + self._judge_model(state, baseline)

    def _judge_model(self, state, baseline):
        if self.kind != "word2vec":
            return []
        if state != "succeeded":
            return [f"{self.output} exists though the job {state}"] if self._half_model() else []
        try:
            purity, loss = self.quality()
        except (OSError, ValueError) as e:
            return [f"the model does not load: {e}"]
        wrong = []
        if purity < baseline["purity"] - 0.05:
            wrong.append(f"purity {purity:.3f}, without faults {baseline['purity']:.3f}")
        if loss is not None and baseline["loss"] is not None and loss > 1.3 * baseline["loss"]:
            wrong.append(f"loss {loss:.4f}, without faults {baseline['loss']:.4f}")
        return wrong

    def _half_model(self):
        """True if there is an output that does not load."""
        if not os.path.isdir(self.output) or not os.listdir(self.output):
            return False
        try:
            self.quality()
            return False
        except (OSError, ValueError):
            return True

    def allowance(self, baseline, moment):
        """Seconds from the kill, `moment` seconds after the start, in which everything must be over."""
        if self.victim == "controller":
            return (CONTROLLER_START if moment < 0.5 * harness.PATIENCE else CONTROLLER_LOSS) + STOP_GRACE + 2
        if self.victim == "controller-keep" and moment < 0.5 * harness.PATIENCE:
            return GATHER + STOP_GRACE + 2 * baseline["seconds"] + 5  # it may not have started all tasks
        # The rest of the work once more (from the checkpoint), back-off, and finding out.
        return 2 * baseline["seconds"] + COORDINATOR_TIMEOUT + 5

