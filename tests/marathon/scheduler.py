"""The scheduler of the Marathon double: starts instances where offers fit, restarts ended ones, one deployment at a time
per app. All state is under one lock; one thread executes due actions."""

import datetime
import re
import threading
import time
import uuid

from cluster import Agent, Task

DEFAULTS = {"cpus": 1, "mem": 128, "disk": 0, "gpus": 0, "instances": 1, "backoffSeconds": 1, "backoffFactor": 1.15,
            "maxLaunchDelaySeconds": 300, "requirePorts": False}


def now_text():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class App:
    def __init__(self, definition):
        self.id = definition["id"]
        self.tasks = {}
        self.failure = None
        self.delay = 0.0
        self.not_before = 0.0
        self.last_end = 0.0
        self.stopping = False
        self.redefine(definition)

    def redefine(self, definition):
        self.definition = {**DEFAULTS, **definition}
        self.version = now_text()
        self.delay = self.not_before = 0.0

    def differs(self, definition):
        changed = {**DEFAULTS, **definition}
        return {**changed, "instances": 0} != {**self.definition, "instances": 0}

    def back_off(self):
        definition, now = self.definition, time.time()
        if now - self.last_end > self.delay + definition["maxLaunchDelaySeconds"]:
            self.delay = 0.0
        self.last_end = now
        self.delay = self.delay * definition["backoffFactor"] if self.delay else definition["backoffSeconds"]
        self.delay = min(self.delay, definition["maxLaunchDelaySeconds"])
        self.not_before = now + self.delay

    def live(self):
        """What counts against `instances`."""
        return [task for task in self.tasks.values() if not task.killing and task.state != "TASK_UNREACHABLE"]


class Deployment:
    def __init__(self, apps, actions):
        self.id = str(uuid.uuid4())
        self.version = now_text()
        self.apps = apps  # App objects
        self.actions = actions


class Conflict(Exception):
    def __init__(self, deployments):
        super().__init__()
        self.ids = [one.id for one in deployments]


class Scheduler:
    def __init__(self, sandboxes, agents=3):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.sandboxes = sandboxes
        self.agents = [Agent(f"127.0.0.{i + 1}", i) for i in range(agents)]
        self.apps, self.stopped, self.deployments = {}, [], []
        self.listeners = []
        self.expunged = []    # tasks given up with their agents
        self.held = False     # knob: deployments do not advance
        self.refused = []     # knob: [(pattern of app ids, reason)]
        self.closed = False
        self.history = []     # (time, what, app, task): for tests
        threading.Thread(target=self._work, daemon=True).start()

    # ---- events ----

    def tell(self, event_type, **fields):
        event = {"eventType": event_type, "timestamp": now_text(), **fields}
        for listener in list(self.listeners):
            listener.put(event)

    def tell_task(self, task, message, state=None):
        state = state or task.state
        self.history.append((time.time(), state, task.app.id, task.id))
        self.tell("status_update_event", slaveId=task.agent.id, taskId=task.id, taskStatus=state, message=message,
                  appId=task.app.id, host=task.agent.host, ports=task.ports, version=task.version)

    # ---- deployments ----

    def begin(self, apps, actions, force):
        locked = [one for one in self.deployments if any(app in one.apps for app in apps)]
        if locked and not force:
            raise Conflict(locked)
        for one in locked:
            self.deployments.remove(one)
            self.tell("deployment_failed", id=one.id, reason="overtaken")
        deployment = Deployment(apps, actions)
        self.deployments.append(deployment)
        self.changed.notify_all()
        return deployment

    def put_group(self, path_id, group, force):
        with self.lock:
            wanted = {one["id"]: one for one in group.get("apps", ())}
            there = {name: app for name, app in self.apps.items() if name.startswith(path_id + "/")}
            touched, actions = [], []
            for name, definition in wanted.items():
                app = there.get(name)
                if app is None:
                    app = App(definition)
                    actions.append(("StartApplication", app, definition))
                elif app.differs(definition):
                    actions.append(("RestartApplication", app, definition))
                elif app.definition["instances"] != definition.get("instances", 1):
                    actions.append(("ScaleApplication", app, definition))
                else:
                    continue
                touched.append(app)
            for name, app in there.items():
                if name not in wanted:
                    actions.append(("StopApplication", app, None))
                    touched.append(app)
            deployment = self.begin(touched, actions, force)
            for action, app, definition in actions:
                self._act(action, app, definition)
            return deployment

    def _act(self, action, app, definition):
        if action == "StopApplication":
            self.apps.pop(app.id, None)
            app.stopping = True
            self.stopped.append(app)
            return
        self.apps[app.id] = app
        if action == "RestartApplication":
            app.redefine(definition)
            for task in app.live():
                task.kill()
        elif action == "ScaleApplication":
            app.definition["instances"] = definition["instances"]

    def delete_group(self, path_id, force):
        with self.lock:
            apps = [app for name, app in self.apps.items() if name.startswith(path_id + "/")]
            if not apps:
                return None
            deployment = self.begin(apps, [("StopApplication", app, None) for app in apps], force)
            for app in apps:
                self._act("StopApplication", app, None)
            return deployment

    def kill_tasks(self, ids, scale, force):
        with self.lock:
            tasks = [task for app in self.apps.values() for task in app.tasks.values() if task.id in ids]
            apps = list({task.app.id: task.app for task in tasks}.values())
            deployment = self.begin(apps, [("ScaleApplication", app, None) for app in apps], force) if scale else None
            for task in tasks:
                if scale and not task.killing:
                    task.app.definition["instances"] = max(0, task.app.definition["instances"] - 1)
                task.kill()
            return deployment

    # ---- tasks ----

    def refusal(self, app):
        for pattern, reason in self.refused:
            if re.search(pattern, app.id):
                return reason
        return None

    def _fits(self, agent, app):
        """None, or Marathon's word for why not."""
        words = {"cpus": "InsufficientCpus", "mem": "InsufficientMemory", "gpus": "InsufficientGpus"}
        for name, word in words.items():
            if agent.free[name] < app.definition[name]:
                return word
        others = [task.agent for task in app.live()]
        for field, operator, *value in app.definition.get("constraints", ()):
            mine = agent.attributes.get(field)
            same = sum(1 for other in others if other.attributes.get(field) == mine)
            value = value[0] if value else ""
            met = {"UNIQUE": mine is not None and same == 0,
                   "CLUSTER": mine == value if value else same == len(others),
                   "LIKE": mine is not None and re.fullmatch(value, mine) is not None,
                   "UNLIKE": mine is None or re.fullmatch(value, mine) is None,
                   "IS": mine == value, "GROUP_BY": True,
                   "MAX_PER": operator == "MAX_PER" and same < int(value or 1)}[operator]
            if not met:
                return "UnfulfilledConstraint"
        return None

    def offers(self, app):
        """(agents that fit, {reason: how many do not})."""
        word, reasons, fitting = self.refusal(app), {}, []
        for agent in self.agents:
            if not agent.reachable:
                continue
            reason = word or self._fits(agent, app)
            if reason:
                reasons[reason] = reasons.get(reason, 0) + 1
            else:
                fitting.append(agent)
        return sorted(fitting, key=lambda agent: -agent.free["cpus"]), reasons

    def _launch(self, app, agent):
        task = Task(app, agent, self.sandboxes, self.ended)
        app.tasks[task.id] = task
        self.tell_task(task, "")
        task.start()
        self.tell_task(task, "", "TASK_RUNNING")  # though it may have ended by now, which is told next

    def ended(self, task, state, message):
        with self.lock:
            task.app.tasks.pop(task.id, None)
            if state in ("TASK_FAILED", "TASK_FINISHED"):  # a service does not end
                task.app.back_off()
            if state == "TASK_FAILED":
                task.app.failure = {"appId": task.app.id, "host": task.agent.host, "message": message, "state": state,
                                    "taskId": task.id, "timestamp": now_text(), "version": task.version,
                                    "slaveId": task.agent.id}
            self.tell_task(task, message)
            self.changed.notify_all()

    def set_reachable(self, host, reachable):
        with self.lock:
            for agent in self.agents:
                if agent.host == host:
                    agent.reachable = reachable
            for task in [task for app in self.apps.values() for task in app.tasks.values()]:
                if task.agent.host != host:
                    continue
                if not reachable:
                    task.state, task.unreachable_since = "TASK_UNREACHABLE", time.time()
                    self.tell_task(task, "agent unreachable")
                else:
                    task.state = "TASK_RUNNING"
                    self.tell_task(task, "")
            for task in self.expunged if reachable else []:  # unknown when its agent is back
                if task.agent.host == host:
                    task.kill()
            self.changed.notify_all()

    def _expunge(self, app):
        """Unreachable tasks: how many of them still count, and which are given up."""
        strategy, counted = app.definition.get("unreachableStrategy", {}), 0
        for task in list(app.tasks.values()):
            if task.state != "TASK_UNREACHABLE" or task.killing:
                continue
            away = time.time() - task.unreachable_since
            if strategy == "disabled" or away < strategy.get("inactiveAfterSeconds", 0):
                counted += 1
            elif away >= strategy.get("expungeAfterSeconds", 0) and not task.expunged:
                task.expunged = True
                app.tasks.pop(task.id)
                self.expunged.append(task)
                self.history.append((time.time(), "expunged", app.id, task.id))
        return counted

    def _advance(self, app):
        counted = self._expunge(app)
        live = app.live()
        for task in sorted(live, key=lambda one: -one.staged)[:max(0, len(live) - app.definition["instances"])]:
            task.kill()
        while len(app.live()) + counted < app.definition["instances"] and time.time() >= app.not_before:
            fitting, _ = self.offers(app)
            if not fitting:
                break
            self._launch(app, fitting[0])

    def _finished(self, deployment):
        return all(not app.tasks if app.stopping else len(app.live()) == app.definition["instances"]
                   for app in deployment.apps)

    def _work(self):
        while not self.closed:
            with self.lock:
                locked = {app.id for one in self.deployments for app in one.apps} if self.held else set()
                for app in list(self.apps.values()):
                    if app.id not in locked:
                        self._advance(app)
                for app in list(self.stopped):
                    for task in app.live():
                        task.kill()
                    if not app.tasks:
                        self.stopped.remove(app)
                for one in [] if self.held else [d for d in self.deployments if self._finished(d)]:
                    self.deployments.remove(one)
                    self.tell("deployment_success", id=one.id)
                self.changed.wait(0.02)
