#!/usr/bin/env python3
"""A test double of Marathon: the REST interface as documented (1.8 to 1.11), with tasks that are real processes.

    marathon_double.py [--agents 3] [--user NAME:PASSWORD | --token TOKEN] [--sandboxes DIR]

prints its URL and ends with its standard input. What it is sent is checked against schema.json, and unknown fields are
refused. POST /test/KNOB turns its knobs: kill {task}, reach {host, reachable, dead}, refuse {app, reason}, hold {on};
GET /test/history says what was started and what ended, GET /test/requests what it was asked."""

import argparse
import base64
import http.server
import json
import pathlib
import queue
import signal
import socketserver
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cluster  # noqa: E402
import scheduler  # noqa: E402
import validate  # noqa: E402


def as_task(task):
    return {"appId": task.app.id, "host": task.agent.host, "id": task.id, "ports": task.ports, "state": task.state,
            "slaveId": task.agent.id, "version": task.version, "servicePorts": [], "ipAddresses": [], "role": "*"}


def as_app(app, embed):
    shown = {**app.definition, "version": app.version}
    if "apps.tasks" in embed:
        shown["tasks"] = [as_task(task) for task in app.tasks.values()]
    if "apps.lastTaskFailure" in embed and app.failure:
        shown["lastTaskFailure"] = app.failure
    return shown


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    routes = ()  # of a double that answers in the same manner

    def log_message(self, *args):
        pass

    # ---- answers ----

    def answer(self, status, value, headers=()):
        body = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def answer_deployment(self, deployment):
        self.answer(200, {"deploymentId": deployment.id, "version": deployment.version},
                    [("Marathon-Deployment-Id", deployment.id)])

    def answer_conflict(self, conflict):
        self.answer(409, {"message": "App is locked by one or more deployments. Override with the option '?force=true'. "
                                     "View details at '/v2/deployments/<DEPLOYMENT_ID>'.",
                          "deployments": [{"id": one} for one in conflict.ids]})

    def answer_invalid(self, errors):
        self.answer(422, {"message": "Object is not valid",
                          "details": [{"path": path or "/", "errors": [text]} for path, text in errors]})

    # ---- requests ----

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = urllib.parse.parse_qs(url.query)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        marathon = self.server.marathon
        if not url.path.startswith("/test/"):
            marathon.requests.append((time.time(), self.command, self.path))
            if marathon.authorization and self.headers.get("Authorization") != marathon.authorization:
                return self.answer(401, {"message": "Invalid username or password."},
                                   [("WWW-Authenticate", 'Basic realm="Mesosphere"')])
        try:
            value = json.loads(body) if body else None
        except ValueError:
            return self.answer(400, {"message": "Invalid JSON", "details": []})
        for method, prefix, function in self.routes or ROUTES:
            if method == self.command and url.path.rstrip("/").startswith(prefix):
                try:
                    return function(self, marathon.scheduler, url.path[len(prefix):].rstrip("/"), value)
                except scheduler.Conflict as conflict:
                    return self.answer_conflict(conflict)
        return self.answer(404, {"message": f"no {self.command} {url.path}"})

    do_GET = do_PUT = do_POST = do_DELETE = handle_request

    def force(self):
        return self.query.get("force") == ["true"]

    def put_group(self, state, rest, value):
        errors = list(validate.group_errors(value or {}, rest))
        if errors:
            return self.answer_invalid(errors)
        with state.lock:
            if self.command == "POST" and any(name.startswith(rest + "/") for name in state.apps):
                return self.answer(409, {"message": f"Group {rest} is already created. Use PUT to change this group."})
            return self.answer_deployment(state.put_group(rest, value, self.force()))

    def get_group(self, state, rest, _):
        with state.lock:
            apps = [as_app(app, []) for name, app in state.apps.items() if name.startswith(rest + "/")]
        if not apps:
            return self.answer(404, {"message": f"Group '{rest}' does not exist"})
        return self.answer(200, {"id": rest, "apps": apps, "groups": [], "dependencies": []})

    def delete_group(self, state, rest, _):
        deployment = state.delete_group(rest, self.force())
        if deployment is None:
            return self.answer(404, {"message": f"Group '{rest}' does not exist"})
        return self.answer_deployment(deployment)

    def get_apps(self, state, rest, _):
        with state.lock:
            if rest:
                app = state.apps.get(rest)
                if app is None:
                    return self.answer(404, {"message": f"App '{rest}' does not exist"})
                return self.answer(200, {"app": as_app(app, ["apps.tasks", "apps.lastTaskFailure"])})
            apps = list(state.apps.values())
            for text in self.query.get("label", ()):
                name, _, label = text.partition("==")
                apps = [app for app in apps if app.definition.get("labels", {}).get(name) == label]
            return self.answer(200, {"apps": [as_app(app, self.query.get("embed", [])) for app in apps]})

    def get_tasks(self, state, _rest, _value):
        with state.lock:
            return self.answer(200, {"tasks": [as_task(t) for app in state.apps.values() for t in app.tasks.values()]})

    def delete_tasks(self, state, _rest, value):
        errors = list(validate.errors(value, validate.TYPES["DeleteTasks"]))
        if errors:
            return self.answer_invalid(errors)
        deployment = state.kill_tasks(value["ids"], self.query.get("scale") == ["true"], self.force())
        return self.answer_deployment(deployment) if deployment else self.answer(200, {"tasks": []})

    def get_deployments(self, state, _rest, _value):
        with state.lock:
            return self.answer(200, [{"id": one.id, "version": one.version, "affectedApps": [app.id for app in one.apps],
                                      "affectedPods": [], "currentStep": 1, "totalSteps": 1, "steps": [],
                                      "currentActions": [{"action": action, "app": app.id}
                                                         for action, app, _ in one.actions]}
                                     for one in state.deployments])

    def delete_deployment(self, state, rest, _):
        with state.lock:
            found = [one for one in state.deployments if one.id == rest.strip("/")]
            if not found:
                return self.answer(404, {"message": f"DeploymentPlan {rest.strip('/')} does not exist"})
            state.deployments.remove(found[0])
            return self.answer(202, None)

    def get_queue(self, state, _rest, _value):
        waiting = []
        with state.lock:
            for app in state.apps.values():
                missing = app.definition["instances"] - len(app.live())
                if missing <= 0:
                    continue
                _, reasons = state.offers(app)
                left = max(0, round(app.not_before - time.time()))
                steps = [{"reason": reason, "declined": count, "processed": len(state.agents)}
                         for reason, count in reasons.items()]
                waiting.append({"count": missing, "role": "*", "since": app.version, "app": as_app(app, []),
                                "delay": {"timeLeftSeconds": left, "overdue": left == 0},
                                "processedOffersSummary": {"processedOffersCount": len(state.agents),
                                                           "unusedOffersCount": sum(reasons.values()),
                                                           "rejectSummaryLastOffers": steps,
                                                           "rejectSummaryLaunchAttempt": steps}})
        self.answer(200, {"queue": waiting})

    def delete_delay(self, state, rest, _):
        with state.lock:
            app = state.apps.get(rest.removesuffix("/delay"))
            if app is None:
                return self.answer(404, {"message": "no such app"})
            app.delay = app.not_before = 0.0
        return self.answer(204, None)

    def get_events(self, state, _rest, _value):
        if self.headers.get("Accept") != "text/event-stream":
            return self.answer(405, {"message": "the header Accept must be text/event-stream"})
        wanted = self.query.get("event_type")
        events = queue.Queue()
        state.listeners.append(events)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        try:
            self.say("event_stream_attached", {"eventType": "event_stream_attached", "remoteAddress": "127.0.0.1"})
            while True:
                try:
                    event = events.get(timeout=15)
                except queue.Empty:
                    self.wfile.write(b"\r\n")
                    continue
                if not wanted or event["eventType"] in wanted:
                    self.say(event["eventType"], event)
        except OSError:
            state.listeners.remove(events)

    def say(self, name, event):
        self.wfile.write(f"event: {name}\r\ndata: {json.dumps(event)}\r\n\r\n".encode())

    def get_info(self, _state, _rest, _value):
        url = self.server.marathon.url
        self.answer(200, {"name": "marathon", "version": "1.11.24", "elected": True, "leader": url[len("http://"):],
                          "frameworkId": "double", "marathon_config": {"mesos_leader_ui_url": url + "/"}})

    def get_metrics(self, state, _rest, _value):
        self.answer(200, {"master/cpus_total": 64.0 * len(state.agents), "master/mem_total": 65536.0 * len(state.agents),
                          "master/gpus_total": 4.0 * len(state.agents)})

    # ---- knobs ----

    def knob(self, state, rest, value):
        with state.lock:
            tasks = [task for app in state.apps.values() for task in app.tasks.values()]
            if rest == "/kill":
                for task in tasks:
                    if task.id == value["task"]:
                        cluster.signal_all(task.id, signal.SIGKILL)
            elif rest == "/reach":
                if value.get("dead"):
                    for task in tasks:
                        if task.agent.host == value["host"]:
                            cluster.signal_all(task.id, signal.SIGKILL)
                state.set_reachable(value["host"], value["reachable"])
            elif rest == "/refuse":
                state.refused = [(value["app"], value["reason"])] if value.get("reason") else []
            elif rest == "/hold":
                state.held = value["on"]
            else:
                return self.answer(404, {"message": "no such knob"})
            state.changed.notify_all()
        return self.answer(200, {})

    def get_history(self, state, rest, _value):
        if rest == "/history":
            return self.answer(200, state.history)
        return self.answer(200, self.server.marathon.requests)


ROUTES = [("PUT", "/v2/groups", Handler.put_group), ("POST", "/v2/groups", Handler.put_group),
          ("GET", "/v2/groups", Handler.get_group), ("DELETE", "/v2/groups", Handler.delete_group),
          ("GET", "/v2/apps", Handler.get_apps), ("GET", "/v2/tasks", Handler.get_tasks),
          ("POST", "/v2/tasks/delete", Handler.delete_tasks), ("GET", "/v2/deployments", Handler.get_deployments),
          ("DELETE", "/v2/deployments", Handler.delete_deployment), ("GET", "/v2/queue", Handler.get_queue),
          ("DELETE", "/v2/queue", Handler.delete_delay), ("GET", "/v2/events", Handler.get_events),
          ("GET", "/v2/info", Handler.get_info), ("GET", "/metrics/snapshot", Handler.get_metrics),
          ("GET", "/test", Handler.get_history), ("POST", "/test", Handler.knob)]


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64


def serve(whose, handler, certificate=None, port=0):
    """(a server that answers for `whose`, its URL). port 0: any that is free."""
    server = Server(("127.0.0.1", port), handler)
    server.marathon = whose
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"


class Marathon:
    """The whole of it, in this process."""

    def __init__(self, sandboxes, agents=3, authorization="", certificate=None, port=0):
        """`certificate`: (its file, its key's file); then it speaks TLS."""
        self.scheduler = scheduler.Scheduler(pathlib.Path(sandboxes), agents)
        self.authorization = authorization
        self.requests = []
        self.server, self.url = serve(self, Handler, certificate, port)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        with self.scheduler.lock:
            self.scheduler.closed = True
            everything = list(self.scheduler.apps.values()) + self.scheduler.stopped
            self.scheduler.apps = {}
            for app in everything:
                for task in list(app.tasks.values()):
                    cluster.signal_all(task.id, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--user")
    parser.add_argument("--token")
    arguments = parser.parse_args()
    authorization = f"token={arguments.token}" if arguments.token else ""
    if arguments.user:
        authorization = "Basic " + base64.b64encode(arguments.user.encode()).decode()
    with tempfile.TemporaryDirectory(prefix="marathon") as sandboxes:
        marathon = Marathon(sandboxes, arguments.agents, authorization)
        print(marathon.url, flush=True)
        sys.stdin.read()
        marathon.close()


if __name__ == "__main__":
    main()
