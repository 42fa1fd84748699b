"""The jobs that the fault suite runs, and what a right end of each looks like."""
import json
import os
import re
import sys

import harness
import planted

STOP_GRACE, CONTROLLER_LOSS = 2.0, 5.0
CONTROLLER_START = 10.0  # how long a coordinator waits for the first word of its controller
KINDS = ("word2vec", "generic", "counter")

_WORD2VEC = """\
name: faults-word2vec
framework: shoal
learn: {{algorithm: word2vec, dim: 32, window: 5, negative: 5, min_count: 1, sample: 0, epochs: {amount}, threads: 1{copies}}}
data:
  train: {{source: "{corpus}", format: text, shard_by: worker}}
roles:
  server: {{replicas: 2, follows: worker}}
  worker: {{replicas: 3, restart: {{when: transient, limit: 3, scope: task}}}}
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
    command: [sh, -c, "{session} sleep 3600 & exec sleep 3600"]
  worker:
    replicas: 2
    command: [sh, -c, "{session} sleep 3600 & i=0; while [ $i -lt {amount} ]; do i=$((i+1)); echo line $i; sleep 0.1; done"]
"""

# Workers that count with a parameter server and say what was acknowledged (counter.py).
_COUNTER = """\
name: faults-counter
framework: generic
roles:
  server: {{replicas: 2, command: ["@shoal", ps-server], ports: [ps], follows: worker}}
  worker:
    replicas: 3
    restart: {{when: transient, limit: 3, scope: task}}
    command: [{python}, -B, "{program}", "{amount}"]
    env: {{PYTHONPATH: "{module}", PYTHONUNBUFFERED: "1"}}
"""

_EVERY = """\
limits: {{gather: {gather}s, deadline: {deadline}s, stop_grace: 2s, coordinator_timeout: {coordinator_timeout}s}}
on_controller_loss: {loss}
"""
_TEXTS = {"word2vec": _WORD2VEC, "generic": _GENERIC, "counter": _COUNTER}
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counter.py")


class Scenario:
    """One kind of job in one Home on an engine. `baseline` (seconds, purity, loss) comes from runs without faults; `work` says how
    much there is to train."""

    def __init__(self, kind, home, victim, work, engine):
        self.kind, self.home, self.victim, self.engine, self.loss = kind, home, victim, engine, None
        self.output = home.path("vectors") if kind == "word2vec" else None
        # A job that is to be stopped for its controller's loss must not be over before that is noticed.
        longer = (8 if engine.shares_files else 60) if victim == "controller" else 1
        self.amount = (work.epochs if kind == "word2vec" else max(1, round(7 * work.seconds))) * longer
        self.words = self.amount * work.words
        text = (_TEXTS[kind] + _EVERY).format(
            corpus=work.corpus, output=self.output, amount=self.amount, session=engine.session, gather=round(engine.gather), deadline=round(engine.deadline),
            coordinator_timeout=round(engine.coordinator_timeout), loss="keep" if victim == "controller-keep" else "stop",
            copies="" if engine.checkpoints else ", server_copies: 2", python=json.dumps(sys.executable), program=PROGRAM,
            module=os.path.join(os.path.dirname(home.binary), "python"))
        if engine.checkpoints and kind != "generic":
            text += "checkpoint: {every: 500ms, keep: 2}\n"
        self.file = home.write("job.yaml", text + engine.job_lines(kind, os.path.dirname(work.corpus)))

    def start(self, *arguments):
        return self.home.start("run", self.file, *arguments)

    def quality(self):
        """(purity, loss) of the saved model; raises OSError, ValueError, … when it is not whole."""
        with open(os.path.join(self.output, "model.json"), encoding="utf-8") as f:
            model = json.load(f)
        vectors = harness.read_vectors(os.path.join(self.output, "vectors.bin"))
        curve = [float(loss) for _, loss in model.get("loss") or ()]  # each point is of some thousand words, and as uncertain
        last = curve[-max(3, len(curve) // 4):]
        return planted.purity(vectors), sum(last) / len(last) if last else None

    def judge(self, baseline, exit_code, fault, said):
        """Sentences about what is wrong with the end of the job, and whether it succeeded. `said`: what the command printed."""
        verdict = self.home.verdict()
        if not verdict and (fault.journal_counts or self.engine.name != "local"):
            verdict = self.home.stored_end()
        state, reason = verdict.get("state"), str(verdict.get("reason"))
        if state is None:
            return self._judge_no_verdict(exit_code, fault, said), False
        if self.victim == "controller" and exit_code == -9:
            return self._judge_loss_of_controller(verdict, baseline), state == "succeeded"
        if self.victim in ("stop-job", "killed-command") and fault.landed:
            told = exit_code == -9 or (state, exit_code) in (("cancelled", 130), ("succeeded", 0))
            wrong = [] if told and (state in ("cancelled", "succeeded") or "controller was killed" in reason) else [
                f"{state} ({reason}), exit code {exit_code} after {fault.landed}"]
            return wrong + self._judge_work(state, baseline), state == "succeeded"
        wrong = []
        # A launcher that does not go on before limits.gather has passed is truly missed.
        missed = self.victim == "stop-launcher" and "did not join within" in reason
        if fault.must_succeed and state != "succeeded" and not missed:
            wrong.append(f"{state} though nothing died: {reason}")
        if state == "failed" and not missed and not any(word in reason.lower() for word in fault.true_words):
            wrong.append(f"failed for another reason than the true one: {reason}")
        # A command that fails by itself stops the job, and says why where the record cannot.
        gave_up = exit_code == 1 and any(word.lower() in said.lower() for word in fault.refusal)
        cancelled = state == "cancelled" and bool(fault.cancels) and fault.cancels in reason and not fault.must_succeed
        if state == "cancelled" and not cancelled and not gave_up:
            wrong.append(f"cancelled: {reason}")
        if exit_code not in (-9, 0 if state == "succeeded" else 130 if cancelled else 1):
            wrong.append(f"exit code {exit_code} of a job that {state}")
        return wrong + self._judge_work(state, baseline), state == "succeeded"

    def _judge_no_verdict(self, exit_code, fault, said):
        """Right where the command could not make a job, or was killed before its coordinator had started: then the store's
        next reader ends the job."""
        if exit_code == -9 and "controller was killed" in self.home.stored_end().get("reason", ""):
            return []
        if exit_code > 0 and any(word.lower() in said.lower() for word in fault.refusal):
            return []
        return ["no verdict.json"]

    def _judge_loss_of_controller(self, verdict, baseline):
        """The job was stopped and says why; or it was as good as over and has a whole model."""
        state, reason = verdict.get("state"), str(verdict.get("reason", ""))
        told = state == "succeeded" or (state in ("cancelled", "failed") and "controller" in reason)
        return ([] if told else [f"{state} after the controller's loss: {reason}"]) + self._judge_work(state, baseline)

    def _judge_work(self, state, baseline):
        """All work is done, and once: words trained, pushes counted, lines printed."""
        if self.kind != "word2vec":
            return self._judge_lines() if state == "succeeded" else []
        if state != "succeeded":
            return [f"{self.output} exists though the job {state}"] if self._half_model() else []
        try:
            purity, loss = self.quality()
            self.loss = loss
        except (OSError, ValueError) as e:
            return [f"the model does not load: {e}"]
        wrong = []
        code, out, err = self.home.run("show", "--json", os.path.basename(self.home.job_dirs()[-1]), seconds=20)
        trained = (json.loads(out).get("result") or {}).get("words_trained") if code == 0 else err
        if trained != self.words:
            wrong.append(f"{trained} words trained, expected {self.words}")
        if purity < baseline["purity"] - 0.05:
            wrong.append(f"purity {purity:.3f}, without faults {baseline['purity']:.3f}")
        if loss is not None and baseline["loss"] is not None and loss > 1.3 * baseline["loss"]:
            wrong.append(f"loss {loss:.4f}, without faults {baseline['loss']:.4f}")
        return wrong

    def _judge_lines(self):
        """The log of each worker of a job that succeeded: its last attempt is whole, and no acknowledged push was lost."""
        code, out, err = self.home.run("logs", os.path.basename(self.home.job_dirs()[-1]), seconds=20)
        if code != 0:
            return [f"`shoal logs` ends with {code}: {err.strip()[-200:]}"]
        wrong = []
        for worker in range(2 if self.kind == "generic" else 3):
            lines = re.findall(rf"^worker-{worker} \| (.*)$", out, re.M)
            wrong += [f"worker {worker}: {sentence}" for sentence in (self._judge_count(lines) if self.kind == "counter" else
                                                                     self._judge_numbers(lines))]
        return wrong

    def _judge_numbers(self, lines):
        numbers = [int(line[5:]) for line in lines if line.startswith("line ")]
        begin = len(numbers) - 1 - numbers[::-1].index(1) if 1 in numbers else 0
        whole = list(range(1, self.amount + 1))
        return [] if numbers[begin:] == whole else [f"its last lines are {numbers[begin:][-8:]}, {len(numbers[begin:])} in number, expected {self.amount}"]

    def _judge_count(self, lines):
        acknowledged, restarts, wrong = 0, 0, []
        for line in lines:
            word, *numbers = line.split()
            if word not in ("begins", "count", "restored", "done"):
                continue
            value, known = map(int, numbers[:2])
            # What the servers restored is of their last checkpoint: only then may a count be lower than before.
            if value < acknowledged and known <= restarts and self.victim not in ("server", "term-server"):
                wrong.append(f"{acknowledged} pushes were acknowledged, and then there are {value}")
            acknowledged, restarts = value, known
        if not lines or lines[-1].split()[:2] != ["done", str(self.amount)]:
            wrong.append(f"it ends with {lines[-1:]}, expected done {self.amount}")
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
        if self.victim == "controller" and not self.engine.shares_files:
            return 120 + self.engine.extra_seconds  # its API server may be away, so that it is waited for
        if self.victim == "controller":
            return (CONTROLLER_START if moment < 0.5 * harness.PATIENCE else CONTROLLER_LOSS) + STOP_GRACE + 2
        if self.victim == "controller-keep" and moment < 0.5 * harness.PATIENCE:
            return self.engine.gather + STOP_GRACE + 2 * baseline["seconds"] + 5  # it may not have started all tasks
        if self.engine.name != "local":
            return self.engine.deadline + self.engine.extra_seconds  # a cluster has its own times; its own deadline ends a job that is stuck, and fails it
        # The rest of the work once more (from the checkpoint), back-off, and finding out.
        return 2 * baseline["seconds"] + self.engine.coordinator_timeout + 5 + self.engine.extra_seconds
