"""Jobs on a double of Marathon (tests/marathon), which starts real processes and starts again whatever ends. After each
job its group is gone, nothing runs, and no Mesos task was made after its task had ended. Prints what it measured."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

import harness

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "marathon"))
import marathon_double  # noqa: E402
import mesos_dns  # noqa: E402

FIGURES = []
TRUE = 'name: four\nframework: generic\nroles: {worker: {replicas: 4, command: ["true"]}}\n'
PICKY = """\
name: picky
roles:
  worker:
    restart: {backoff: 10ms}
    on_exit: [{code: 79, action: exclude_host}]
    command: [sh, -c, "test $SHOAL_ATTEMPT = 1 || exit 79"]
"""
SLEEP = 'name: long\nframework: generic\nroles: {worker: {replicas: 2, command: [sleep, "%s"]}}\n'


def tearDownModule():
    for figure in FIGURES:
        print("| " + " | ".join(figure) + " |")


class MarathonTest(unittest.TestCase):
    authorization = ""

    def certificate(self):
        """(its file, its key's file), or None: no TLS."""

    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.marathon = marathon_double.Marathon(self.home.path("sandboxes"), authorization=self.authorization,
                                                 certificate=self.certificate())
        self.addCleanup(self.marathon.close)
        self.env = {"SHOAL_MARATHON_URL": self.marathon.url, "SHOAL_ENGINE": "marathon"}

    def knob(self, name, **value):
        request = urllib.request.Request(f"{self.marathon.url}/test/{name}", json.dumps(value).encode())
        with urllib.request.urlopen(request) as reply:
            self.assertEqual(reply.status, 200)

    def history(self, *states):
        return [one for one in self.marathon.scheduler.history if one[1] in states]

    def launches(self):
        return len(self.history("TASK_STAGING"))

    def nothing_is_left(self):
        state = self.marathon.scheduler
        harness.poll_until(lambda: not state.deployments, 5 * harness.PATIENCE)  # somebody else's may take its time
        self.assertEqual((list(state.apps), state.stopped, state.deployments), ([], [], []))
        self.assertEqual([one for one in self.home.leftovers() if "sandboxes" not in one], [])

    def run_job(self, text, *arguments, code=0, env=None):
        path = self.home.write("job.yaml", text)
        got, out, err = self.home.run("run", path, *arguments, env={**self.env, **(env or {})})
        self.assertEqual(got, code, out + err)
        return out + err

    def start_job(self, text, *arguments):
        return self.home.start("run", self.home.write("job.yaml", text), *arguments, env=self.env)

    def wait_for(self, condition, seconds=30):
        value = harness.poll_until(condition, seconds * harness.PATIENCE)
        self.assertTrue(value)
        return value

    def running(self, process):
        """The Mesos tasks of its workers, once their programs run."""
        self.wait_for(lambda: "sleep" in str([p.argv for p in self.home.processes()]) or process.poll() is not None)
        self.assertIsNone(process.poll(), harness.said(process))
        return [task for app in self.marathon.scheduler.apps.values() if app.id.endswith("/worker")
                for task in app.tasks.values()]

    def finish(self, process, code=0, seconds=60):
        self.assertEqual(process.wait(timeout=seconds * harness.PATIENCE), code, harness.said(process))
        self.nothing_is_left()
        return harness.said(process)


class EndToEnd(MarathonTest):
    def test_tasks_that_end_are_not_started_again(self):
        begun = time.monotonic()
        self.run_job(TRUE)
        took = time.monotonic() - begun
        self.nothing_is_left()
        self.assertEqual(self.launches(), 5, self.marathon.scheduler.history)  # a coordinator and four workers
        self.assertEqual(self.history("TASK_FINISHED", "TASK_FAILED"), [])
        FIGURES.append(("`shoal run` of 4 tasks of `true`, whole command", f"{took * 1000:.0f} ms"))

    def test_the_group_goes_after_the_verdict(self):
        words = [["sea", "ship", "wave", "land"][i * i % 7 % 4] for i in range(5000)]
        source = self.home.write("text.txt", "\n".join(" ".join(words[i:i + 10]) for i in range(0, 5000, 10)))
        results = []
        for engine in ("local", "marathon"):
            out = self.home.path("out-" + engine)
            self.run_job(harness.TRAIN % (source, out), "--engine", engine)
            with open(os.path.join(out, "vectors.bin"), "rb") as file:
                results.append(file.read())
        self.assertEqual(results[0], results[1])
        self.assertGreater(len(results[0]), 100)
        self.nothing_is_left()
        verdicts = [os.path.getmtime(os.path.join(one, "verdict.json")) for one in self.home.job_dirs()]
        gone = max(one[0] for one in self.history("TASK_KILLED"))
        self.assertLess(gone - max(verdicts), 5 * harness.PATIENCE)
        self.assertEqual(self.launches(), 4)
        FIGURES.append(("word2vec in deterministic mode", "the local engine's bytes"))
        FIGURES.append(("from the verdict to the last Mesos task gone", f"{(gone - max(verdicts)) * 1000:.0f} ms"))

    def test_the_coordinator_is_found_by_its_srv_record(self):
        """Where launchers do not see its file: the first look of each is made to fail."""
        dns = mesos_dns.MesosDns(self.marathon.scheduler)
        self.addCleanup(dns.close)
        self.run_job(TRUE, env={"SHOAL_MESOS_DNS": dns.address, "SHOAL_FAULTS": "launcher.find=EACCES@1"})
        self.nothing_is_left()
        found = [name for name, kind, answers in dns.asked if kind == mesos_dns.SRV and answers == 1]
        self.assertTrue(found, dns.asked)
        self.assertRegex(found[0], r"^_coordinator\._coordinator-four-[-0-9a-f]+-shoal\._tcp\.marathon\.mesos$")

    def test_without_a_name_server_the_coordinator_is_found_by_its_file(self):
        dns = mesos_dns.MesosDns(self.marathon.scheduler)
        dns.close()
        self.run_job(TRUE, env={"SHOAL_MESOS_DNS": dns.address, "SHOAL_FAULTS": "launcher.find=EACCES@1"})
        self.nothing_is_left()

    def test_a_lost_agent_is_made_good(self):
        process = self.start_job(SLEEP % 3)
        lost = self.running(process)[0]
        self.knob("reach", host=lost.agent.host, reachable=False, dead=True)
        self.finish(process)
        self.assertGreater(self.launches(), 3)

    def test_a_killed_mesos_task_is_made_good(self):
        process = self.start_job(SLEEP % 3)
        self.knob("kill", task=self.running(process)[0].id)
        self.finish(process)
        self.assertEqual(self.launches(), 4)

    def test_a_host_that_a_rule_excludes_is_left(self):
        job = self.start_job(PICKY)
        excluded = self.wait_for(lambda: re.search(r"host (\S+) is excluded for role worker", harness.said(job)))
        launches = self.launches()
        # The double takes the agent that has most to give, and that is the same one again: its instances end.
        self.wait_for(lambda: self.launches() >= launches + 2)
        self.knob("reach", host=excluded[1], reachable=False, dead=False)
        self.assertEqual(job.wait(60 * harness.PATIENCE), 0, harness.said(job))
        self.nothing_is_left()

    def test_why_it_waits_is_said(self):
        self.knob("refuse", app=".", reason="InsufficientMemory")
        process = self.start_job(SLEEP % 0)
        self.wait_for(lambda: "not enough memory (3 of 3 offers)" in self.home.run("jobs", env=self.env)[1]
                      or process.poll() is not None)
        self.assertIsNone(process.poll(), harness.said(process))
        self.assertEqual(self.launches(), 0)
        self.knob("refuse", app="", reason="")
        self.finish(process)

    def test_a_deployment_may_take_its_time(self):
        self.knob("hold", on=True)
        process = self.start_job(SLEEP % 0)
        self.wait_for(lambda: self.marathon.scheduler.deployments)
        self.assertEqual(self.launches(), 0)
        self.knob("hold", on=False)
        self.finish(process)

    def test_a_group_that_somebody_removes_fails_the_job(self):
        process = self.start_job(SLEEP % 600)
        task = self.running(process)[0]
        group = task.app.id.rsplit("/", 1)[0]
        request = urllib.request.Request(f"{self.marathon.url}/v2/groups{group}?force=true", method="DELETE")
        urllib.request.urlopen(request).close()
        self.assertIn("was removed from Marathon by another party", self.finish(process, code=1))

    def test_what_somebody_scales_down_is_scaled_up_again(self):
        """`POST /v2/tasks/delete?scale=true`, of a worker and then of the coordinator."""
        process = self.start_job(SLEEP % 3)
        self.running(process)
        for role in ("worker", "coordinator"):
            launches = self.launches()
            app = next(app for app in self.marathon.scheduler.apps.values() if app.id.endswith("/" + role))
            body = json.dumps({"ids": [next(iter(app.tasks.values())).id]}).encode()
            urllib.request.urlopen(f"{self.marathon.url}/v2/tasks/delete?scale=true&force=true", body).close()
            self.wait_for(lambda begun=launches: self.launches() > begun or process.poll() is not None)
        self.finish(process)

    def test_stop_removes_the_group(self):
        process = self.start_job(SLEEP % 600)
        self.running(process)
        begun = time.monotonic()
        self.assertEqual(self.home.run("stop", "long", env=self.env)[0], 0)
        self.finish(process, code=130)
        FIGURES.append(("`shoal stop` to the group gone", f"{(time.monotonic() - begun) * 1000:.0f} ms"))


class Deployments(MarathonTest):
    """Another deployment on the group: ours is overtaken, somebody else's is waited for."""
    ELASTIC = 'name: long\nframework: generic\nroles: {worker: {replicas: 2, max: 4, command: [sleep, "600"]}}\n'

    def group_puts(self):
        return [one[2] for one in self.marathon.requests if one[1] == "PUT"]

    def programs(self):
        return len([one for one in self.home.processes() if one.argv[:1] == ["sleep"]])

    def scale(self, count):
        code, out, err = self.home.run("scale", "long", f"worker={count}", env=self.env)
        self.assertEqual(code, 0, out + err)

    def end(self, process):
        self.assertEqual(self.home.run("stop", "long", env=self.env)[0], 0)
        self.finish(process, code=130)

    def test_our_own_is_overtaken(self):
        process = self.start_job(self.ELASTIC)
        self.wait_for(lambda: self.programs() == 2)
        self.wait_for(lambda: not self.marathon.scheduler.deployments)
        self.knob("hold", on=True)
        self.scale(3)
        first = self.wait_for(lambda: [one.id for one in self.marathon.scheduler.deployments])
        self.scale(4)
        self.wait_for(lambda: first != [one.id for one in self.marathon.scheduler.deployments])
        self.assertEqual([one.endswith("?force=true") for one in self.group_puts()], [False, False, False, True])
        self.knob("hold", on=False)
        self.wait_for(lambda: self.programs() == 4)
        self.end(process)

    def test_somebody_elses_is_waited_for(self):
        process = self.start_job(self.ELASTIC)
        task = self.running(process)[0]
        self.wait_for(lambda: self.programs() == 2 and not self.marathon.scheduler.deployments)
        self.knob("hold", on=True)
        theirs = self.marathon.scheduler.kill_tasks([task.id], True, False).id
        asked = len(self.group_puts())
        self.scale(3)
        self.wait_for(lambda: len(self.group_puts()) > asked + 1)  # refused, and asked again
        self.assertEqual([one.id for one in self.marathon.scheduler.deployments], [theirs])
        self.assertFalse([one for one in self.group_puts() if "force" in one])
        self.knob("hold", on=False)
        self.wait_for(lambda: self.programs() == 3)
        self.end(process)


class Agents(MarathonTest):
    def test_one_that_is_only_out_of_reach_runs_nothing_beside_its_successor(self):
        """Who replaces its Mesos tasks finds their places taken, while they hold their locks there."""
        files = self.home.path("program-")
        process = self.start_job("name: far\nframework: generic\nroles: {worker: {replicas: 2, command: [sh, -c, "
                                 f"'exec 9>> {files}$SHOAL_INDEX; flock -n 9 || echo twice >> {files}$SHOAL_INDEX; exec sleep 2']}}}}\n")
        lost = self.running(process)[0]
        self.knob("reach", host=lost.agent.host, reachable=False)
        self.wait_for(lambda: len([one for one in self.history("TASK_STAGING") if "worker" in one[2]]) >= 3)
        self.assertEqual(process.wait(timeout=60 * harness.PATIENCE), 0, harness.said(process))
        self.knob("reach", host=lost.agent.host, reachable=True)
        self.nothing_is_left()
        for index in (0, 1):
            with open(f"{files}{index}", encoding="ascii") as file:
                self.assertEqual(file.read(), "")


class Service(MarathonTest):
    """What Marathon is best at: a role that serves until it is stopped, and is there again whatever dies."""
    TEXT = """\
name: service
framework: generic
roles:
  server:
    replicas: 1
    ports: [http]
    ready: {http: {port: http}, every: 50ms}
    restart: {when: always, limit: 100, backoff: 100ms}
    command: [sh, -c, 'echo http://127.0.0.1:$SHOAL_PORT/ > @HOME@/url.new && mv @HOME@/url.new @HOME@/url; exec python3 -m http.server --directory @HOME@/www $SHOAL_PORT']
  client:
    replicas: 1
    after: {role: server, when: ready}
    command: [sh, -c, 'while [ ! -e @HOME@/enough ]; do sleep 0.05; done']
success: {all: [client]}
"""

    def served(self):
        try:
            with open(self.home.path("url"), encoding="ascii") as file, urllib.request.urlopen(file.read().strip(), timeout=1) as reply:
                return reply.read() == b"hello"
        except (OSError, ValueError):
            return False

    def test_it_serves_again_after_each_loss(self):
        os.mkdir(self.home.path("www"))
        self.home.write("www/index.html", "hello")
        process = self.start_job(self.TEXT.replace("@HOME@", self.home.root))
        self.wait_for(self.served)
        launched = self.launches()
        os.unlink(self.home.path("url"))
        for one in self.home.processes():
            if one.argv[1:3] == ["-m", "http.server"]:
                os.kill(one.pid, signal.SIGKILL)  # started again where it is
        self.wait_for(self.served)
        self.assertEqual(self.launches(), launched)  # Marathon has not noticed
        os.unlink(self.home.path("url"))
        server = [task for app in self.marathon.scheduler.apps.values() if app.id.endswith("/server") for task in app.tasks.values()]
        self.knob("kill", task=server[0].id)  # all of its Mesos task: Marathon makes another
        self.wait_for(self.served)
        self.assertEqual(self.launches(), launched + 1)
        self.home.write("enough", "")
        self.finish(process)


class Health(MarathonTest):
    """Marathon's health checks: who hangs is replaced, who has ended or waits is left alone."""
    SERVER = """\
import http.server, os, signal
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/hang":
            open(@HOME@ + "/hung", "w").close()
            signal.pause()
        self.send_response(204 if self.path == "/live" else 404)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", int(os.environ["SHOAL_PORT"])), Handler)
with open(@HOME@ + "/url.new", "w") as file:
    file.write(f"http://127.0.0.1:{server.server_address[1]}")
os.rename(@HOME@ + "/url.new", @HOME@ + "/url")
server.serve_forever()
"""
    TEXT = """\
name: watched
roles:
  server:
    ports: [http]
    command: [python3, @HOME@/server.py]
    health: {http: {port: http, path: /live}, grace: 8s, every: 1s, timeout: 3s, failures: 2}
  early:
    command: ["true"]
    health: {command: ["false"], grace: 0s, every: 1s, failures: 1}
  late:
    command: ["true"]
    after: {role: client, when: ended}
    health: {command: ["false"], grace: 0s, every: 1s, failures: 1}
  client:
    command: [sh, -c, 'while [ ! -e @HOME@/enough ]; do sleep 0.05; done']
    health: {command: [sh, -c, 'test "$SHOAL_ROLE" = client'], grace: 0s, every: 1s, failures: 1}
success: {all: [client, early, late]}
"""

    def ask(self, path):
        try:
            with open(self.home.path("url"), encoding="ascii") as file, urllib.request.urlopen(file.read() + path, timeout=1) as reply:
                return reply.status == 204
        except (OSError, ValueError):
            return False

    def task_of(self, role):
        tasks = [task for app in self.marathon.scheduler.apps.values() if app.id.endswith("/" + role) for task in app.tasks.values()]
        return tasks[0] if len(tasks) == 1 else None

    def test_who_hangs_is_replaced_and_who_has_ended_is_not(self):
        self.home.write("server.py", self.SERVER.replace("@HOME@", repr(self.home.root)))
        process = self.start_job(self.TEXT.replace("@HOME@", self.home.root))
        self.wait_for(lambda: self.ask("/live"))
        hung, launched = self.task_of("server"), self.launches()
        asked = {role: self.task_of(role).health for role in ("server", "early", "client", "late")}
        self.wait_for(lambda: all(len(health) >= 2 for health in asked.values()))
        self.assertTrue(all(all(health) for health in asked.values()), asked)
        self.assertFalse(self.ask("/hang"))  # nobody else is answered from then on
        os.unlink(self.home.path("url"))
        self.assertTrue(os.path.exists(self.home.path("hung")))
        self.wait_for(lambda: self.ask("/live"))
        self.assertTrue(hung.ill)
        self.assertEqual(hung.health[-2:], [False, False])
        self.assertEqual(self.launches(), launched + 1)
        self.home.write("enough", "")
        self.assertIn("succeeded", self.finish(process))
        self.assertEqual(self.launches(), launched + 1)


class Fetched(MarathonTest):
    def test_an_imported_app_finds_what_it_fetches(self):
        """constraints, fetch and secrets of a Marathon file go through the block `marathon`."""
        data = self.home.write("data.txt", "fetched words\n")
        app = {"id": "/ml/reader", "cmd": "cat data.txt; echo key $KEY", "cpus": 0.1, "mem": 32, "instances": 2,
               "constraints": [["hostname", "UNIQUE"]], "fetch": [{"uri": "file://" + data}],
               "env": {"KEY": {"secret": "k"}}, "secrets": {"k": {"source": "ml/key"}}}
        path = self.home.write("app.json", json.dumps(app))
        code, out, err = self.home.run("run", path, env=self.env)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(out.count("fetched words"), 2, out + err)
        self.assertEqual(out.count("key value of ml/key"), 2, out + err)
        self.nothing_is_left()

    def test_the_program_itself(self):
        """Agents that have no shoal get it."""
        self.run_job(TRUE + f"marathon: {{program: shoal, fetch: ['file://{harness.DEFAULT_BINARY}']}}\n")
        self.nothing_is_left()


class Story(MarathonTest):
    """examples/dcos-word2vec: the deployment of then, and what replaces it."""
    FOLDER = os.path.join(harness.SOURCE, "examples", "dcos-word2vec")

    def test_the_three_apps_as_they_were_written(self):
        for engine in ("local", "marathon"):
            code, out, err = self.home.run("run", os.path.join(self.FOLDER, "marathon.json"), "--engine", engine, env=self.env,
                                           cwd=self.FOLDER)
            self.assertEqual(code, 0, out + err)
            self.assertEqual(out.count("| worker: the root is 127."), 2, out)
            self.assertEqual(out.count("1 servers, 2 workers"), out.count("the root is"), out)
            self.assertNotIn("10.0.3.17", out)  # its own addresses
        self.nothing_is_left()
        self.assertEqual(self.launches(), 5)

    def test_the_job_file_that_replaces_them(self):
        source = self.home.write("text8", "sea ship wave land " * 2000)
        for engine in ("local", "marathon"):
            model = self.home.path("vectors-" + engine)
            code, out, err = self.home.run("run", os.path.join(self.FOLDER, "job.yaml"), "--engine", engine, "--set",
                                           f"data.train.source={source}", "--set", f"outputs.model={model}", env=self.env)
            self.assertEqual(code, 0, out + err)
            self.assertEqual(len(harness.read_vectors(os.path.join(model, "vectors.bin"))), 4)
        self.nothing_is_left()


class Plan(MarathonTest):
    def test_plan_shows_the_group_and_reaches_for_nobody(self):
        path = self.home.write("job.yaml", SLEEP % 1 + "marathon: {constraints: ['@hostname:UNIQUE'], group: /ml/jobs,\n"
                               "  secrets: {KEY: training/key}}\n")
        code, out, err = self.home.run("plan", path, "--engine", "marathon", env={"SHOAL_MARATHON_TOKEN": "s3cret"})
        self.assertEqual(code, 0, err)
        self.assertIn('"constraints"', out)
        self.assertIn("/ml/jobs/", out)
        self.assertNotIn("s3cret", out + err)
        self.assertEqual(self.marathon.requests, [])

    def test_what_is_wrong_is_said(self):
        for setting, says in (("constraints: [hostname]", "FIELD:OPERATOR"), ("group: shoal", "expected a path"),
                              ("url: nonsense", "marathon.url"), ("privileged: true", "Docker's"),
                              ("grop: /x", "group")):
            path = self.home.write("job.yaml", SLEEP % 1 + f"marathon: {{{setting}}}\n")
            code, out, err = self.home.run("plan", path, "--engine", "marathon")
            self.assertEqual(code, 2, out + err)
            self.assertIn(says, err)


class Credentials(MarathonTest):
    def check(self, refusal, wrong, variable, right):
        """Without the right ones a job is refused in these words; from a variable and from a file they are taken."""
        self.assertIn(refusal, self.run_job(TRUE, code=1, env=wrong))
        self.run_job(TRUE, env={variable: right})
        self.run_job(TRUE, env={"SHOAL_MARATHON_CREDENTIALS": self.home.write("credentials", right + "\n")})
        self.nothing_is_left()


class Token(Credentials):
    authorization = "token=abc"

    def test_credentials(self):
        self.check("SHOAL_MARATHON_TOKEN", {}, "SHOAL_MARATHON_TOKEN", "abc")


class Basic(Credentials):
    authorization = "Basic dXNlcjpwYXNz"

    def test_credentials(self):
        self.check("401", {"SHOAL_MARATHON_USER": "user:wrong"}, "SHOAL_MARATHON_USER", "user:pass")


class Tls(MarathonTest):
    authorization = "token=abc"

    def certificate(self):
        files = self.home.path("cert.pem"), self.home.path("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=marathon", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]],
                       check=True, capture_output=True)
        return files

    def test_only_one_whose_certificate_is_known_is_told_the_token(self):
        token = {"SHOAL_MARATHON_TOKEN": "abc"}
        self.assertIn("certificate", self.run_job(TRUE, code=1, env=token))
        self.assertEqual(self.marathon.requests, [])
        self.run_job(TRUE + f"marathon: {{authorities: {self.home.path('cert.pem')}}}\n", env=token)
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()
