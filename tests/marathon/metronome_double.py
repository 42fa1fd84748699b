"""A test double of Metronome: the REST interface as documented (v1: jobs, schedules, runs), with runs that are real
processes. Its clock stands still until a test turns it: Metronome.advance(seconds) runs what was due in between, in order.
What it is sent is checked against schema.json, and unknown fields are refused."""

import datetime
import pathlib
import re
import threading
import zoneinfo

import cluster
import cron
import marathon_double
import signal
import validate

DEFAULT_DEADLINE = 15 * 60  # of a scheduled run to start


def text_of(moment):
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "+0000") if moment else None


class Run:
    """One run of a job; an app of one instance to the agent that it goes to."""

    def __init__(self, job, number, created, deadline):
        self.job, self.created, self.deadline = job, created, deadline
        self.run_id = created.strftime("%Y%m%d%H%M%S") + f"{number:05d}"
        self.id = f"{job.id}.{self.run_id}"
        run = job.spec["run"]
        self.definition = {**run, "fetch": run.get("artifacts", [])}
        self.version = text_of(created)
        self.status, self.task, self.completed, self.stopping = "STARTING", None, None, False

    def shown(self):
        tasks = [{"id": self.task.id, "startedAt": self.version, "status": self.task.state}] if self.task else []
        return {"id": self.run_id, "jobId": self.job.id, "createdAt": text_of(self.created), "status": self.status,
                "completedAt": text_of(self.completed), "tasks": tasks}


class Job:
    def __init__(self, spec):
        self.id, self.spec, self.schedules, self.runs = spec["id"], spec, {}, []
        self.good, self.bad = [], []  # when runs ended

    def active(self):
        return [run for run in self.runs if run.completed is None]

    def shown(self, embed, now):
        shown = dict(self.spec)
        if "schedules" in embed:
            shown["schedules"] = [shown_schedule(one, now) for one in self.schedules.values()]
        if "activeRuns" in embed:
            shown["activeRuns"] = [run.shown() for run in self.active()]
        if "historySummary" in embed:
            shown["historySummary"] = {
                "successCount": len(self.good), "failureCount": len(self.bad),
                "lastSuccessAt": text_of(self.good[-1]) if self.good else None,
                "lastFailureAt": text_of(self.bad[-1]) if self.bad else None}
        return shown


def next_of(schedule, after):
    return cron.Cron(schedule["cron"]).next(after, zoneinfo.ZoneInfo(schedule["timezone"]))


def shown_schedule(schedule, now):
    upcoming = next_of(schedule, now)
    return {**schedule, **({"nextRunAt": text_of(upcoming)} if upcoming else {})}


def schedule_errors(value):
    yield from validate.errors(value, validate.TYPES["Schedule"])
    try:
        cron.Cron(value.get("cron", ""))
    except ValueError as error:
        yield "/cron", str(error)
    try:
        zoneinfo.ZoneInfo(value.get("timezone", "UTC"))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        yield "/timezone", "is no valid time zone"


def job_errors(value):
    yield from validate.errors(value, validate.TYPES["Job"])
    run = value.get("run", {})
    if ("cmd" in run) == ("args" in run):
        yield "/run", "Either `cmd` or `args` must be supplied, not both"
    for name, entry in run.get("env", {}).items():
        if isinstance(entry, dict) and entry.get("secret") not in run.get("secrets", {}):
            yield f"/run/env/{name}", "the secret is not defined"


class Handler(marathon_double.Handler):
    def missing(self, what, name):
        return self.answer(404, {"message": f"{what} '{name}' does not exist"})

    def jobs(self, state, rest, value):
        """/v1/jobs, and all that is below: {what it is: (its name in answers)}."""
        parts = [part for part in rest.split("/") if part]
        with state.lock:
            if not parts:
                return self.all_jobs(state, value)
            job = state.jobs.get(parts[0])
            if job is None:
                return self.missing("Job", parts[0])
            if len(parts) == 1:
                return self.one_job(state, job, value)
            if parts[1] == "schedules":
                return self.schedules(state, job, parts[2:], value)
            if parts[1] == "runs":
                return self.runs(state, job, parts[2:])
        return self.answer(404, {"message": "no such endpoint"})

    def all_jobs(self, state, value):
        if self.command == "GET":
            return self.answer(200, [one.shown(self.query.get("embed", []), state.now) for one in state.jobs.values()])
        errors = list(job_errors(value or {}))
        if self.command != "POST" or errors:
            return self.answer_invalid(errors)
        if value["id"] in state.jobs:
            return self.answer(409, {"message": f"Job '{value['id']}' already exists"})
        state.jobs[value["id"]] = Job(value)
        return self.answer(201, value)

    def one_job(self, state, job, value):
        if self.command == "GET":
            return self.answer(200, job.shown(self.query.get("embed", []), state.now))
        if self.command == "PUT":
            errors = list(job_errors(value or {}))
            if errors:
                return self.answer_invalid(errors)
            job.spec = value
            return self.answer(200, value)
        if job.active() and self.query.get("stopCurrentJobRuns") != ["true"]:
            return self.answer(409, {"message": f"Job '{job.id}' has active job runs", "jobRuns": []})
        del state.jobs[job.id]
        return self.answer(200, {})

    def schedules(self, state, job, rest, value):
        if self.command in ("PUT", "POST"):
            errors = list(schedule_errors(value or {}))
            if errors:
                return self.answer_invalid(errors)
            value = {"timezone": "UTC", "concurrencyPolicy": "ALLOW", "enabled": True,
                     "startingDeadlineSeconds": DEFAULT_DEADLINE, **value}
        if not rest:
            if self.command == "GET":
                return self.answer(200, [shown_schedule(one, state.now) for one in job.schedules.values()])
            if value["id"] in job.schedules:
                return self.answer(409, {"message": f"Schedule '{value['id']}' already exists"})
            job.schedules[value["id"]] = value
            return self.answer(201, value)
        if rest[0] not in job.schedules:
            return self.missing("Schedule", rest[0])
        if self.command == "DELETE":
            del job.schedules[rest[0]]
            return self.answer(200, {})
        if self.command == "PUT":
            job.schedules[rest[0]] = value
        return self.answer(200, job.schedules[rest[0]])

    def runs(self, state, job, rest):
        if not rest:
            if self.command == "GET":
                return self.answer(200, [run.shown() for run in job.active()])
            return self.answer(201, state.begin(job, None).shown())
        found = [run for run in job.active() if run.run_id == rest[0]]
        if not found:
            return self.missing("JobRun", rest[0])
        if rest[1:] == ["actions", "stop"]:
            state.stop(found[0])
            return self.answer(200, {})
        return self.answer(200, found[0].shown())


Handler.routes = [(method, "/v1/jobs", Handler.jobs) for method in ("GET", "PUT", "POST", "DELETE")]


class Metronome:
    """The whole of it, in this process, on its own agents of this machine."""

    def __init__(self, sandboxes, authorization="", certificate=None, now=None, port=0):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.sandboxes = pathlib.Path(sandboxes)
        self.agents = [cluster.Agent(f"127.0.0.{i + 1}", i) for i in range(3)]
        self.now = now or datetime.datetime(2026, 3, 2, 0, 0, 30, tzinfo=datetime.timezone.utc)
        self.jobs, self.history, self.requests = {}, [], []
        self.count = 0
        self.authorization = authorization
        self.scheduler = self
        self.server, self.url = marathon_double.serve(self, Handler, certificate, port)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for job in self.jobs.values():
                for run in job.active():
                    if run.task:
                        cluster.signal_all(run.task.id, signal.SIGKILL)

    # ---- time ----

    def advance(self, seconds):
        """Turns the clock; what was due in between is begun, and what could not begin in time given up."""
        with self.lock:
            end = self.now + datetime.timedelta(seconds=seconds)
            while True:
                due = [(at, job, schedule) for job in self.jobs.values() for schedule in job.schedules.values()
                       if schedule["enabled"] and (at := next_of(schedule, self.now)) and at <= end]
                if not due:
                    break
                self.now, job, schedule = min(due, key=lambda one: (one[0], one[1].id))
                self._give_up()
                if schedule["concurrencyPolicy"] == "FORBID" and job.active():
                    self.history.append(("skipped", job.id, text_of(self.now)))
                else:
                    self.begin(job, schedule)
            self.now = end
            self._give_up()

    def _give_up(self):
        for job in self.jobs.values():
            for run in job.active():
                if run.status == "STARTING" and run.deadline <= self.now:
                    self._complete(run, False)

    # ---- runs ----

    def begin(self, job, schedule):
        limit = job.spec["run"].get("maxLaunchDelay", 3600)
        if schedule:
            limit = min(limit, schedule["startingDeadlineSeconds"])
        self.count += 1
        run = Run(job, self.count, self.now, self.now + datetime.timedelta(seconds=limit))
        job.runs.append(run)
        self._launch(run)
        return run

    def _fits(self, agent, run):
        for one in run.definition.get("placement", {}).get("constraints", ()):
            mine, value = agent.attributes.get(one["attribute"]), one.get("value", "")
            met = {"IS": mine == value, "EQ": mine == value, "LIKE": bool(mine and re.fullmatch(value, mine)),
                   "UNLIKE": not (mine and re.fullmatch(value, mine))}[one["operator"]]
            if not met:
                return False
        return agent.reachable and all(agent.free[name] >= run.definition.get(name, 0) for name in agent.free)

    def offers(self):
        """Mesos makes new offers: what waits begins where it fits."""
        with self.lock:
            for job in self.jobs.values():
                for run in job.active():
                    if run.status == "STARTING":
                        self._launch(run)

    def _launch(self, run):
        fitting = [agent for agent in self.agents if self._fits(agent, run)]
        if fitting:
            run.status = "ACTIVE"
            run.task = cluster.Task(run, fitting[0], self.sandboxes, self._ended)
            self.history.append(("started", run.job.id, run.task.id))
            run.task.start()

    def stop(self, run):
        run.stopping = True
        if run.task:
            run.task.kill()
        else:
            self._complete(run, False)

    def _ended(self, task, state, message):
        with self.lock:
            run = task.app
            self.history.append((state, run.job.id, task.id))
            restart = run.definition.get("restart", {"policy": "NEVER"})
            patience = datetime.timedelta(seconds=restart.get("activeDeadlineSeconds", 1 << 30))
            again = restart["policy"] == "ON_FAILURE" and not run.stopping and self.now < run.created + patience
            if state == "TASK_FINISHED" or not again:
                self._complete(run, state == "TASK_FINISHED")
            else:
                self._launch(run)

    def _complete(self, run, good):
        run.status, run.completed = "SUCCESS" if good else "FAILED", self.now
        (run.job.good if good else run.job.bad).append(self.now)
        self.changed.notify_all()
