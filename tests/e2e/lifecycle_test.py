"""Several processes a task, restart scopes, order and readiness, rules of ends: job files against the real binary, with a
plain HTTP service as the server. SHOAL_BIN names the binary."""
import json
import os
import re
import socket
import unittest

import harness

SERVICE = """\
name: service
roles:
  web:
    follows: client
    ports: [http]
    command: [python3, -c, 'import http.server, os;
http.server.ThreadingHTTPServer.allow_reuse_address = True;
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["SHOAL_PORT"])), http.server.SimpleHTTPRequestHandler).serve_forever()']
    ready: {http: {port: http, path: /}, every: 20ms}
  client:
    replicas: 2
    after: {role: web}
    command: [python3, -c, 'import json, os, urllib.request;
at = json.loads(os.environ["SHOAL_CLUSTER"])["roles"]["web"][0];
print("status", urllib.request.urlopen("http://" + at + "/", timeout=5).status)']
success: {all: client}
"""
PROCESSES = """\
name: processes
roles:
  worker:
    replicas: 2
    processes: 3
    resources: {memory: 256Mi}
    command: [sh, -c, "echo index $SHOAL_INDEX rank $SHOAL_LOCAL_RANK of $SHOAL_LOCAL_SIZE; exit @CODE@"]
"""
TOGETHER = """\
name: together
roles:
  worker:
    replicas: 3
    restart: {scope: job, limit: 1, backoff: 10ms}
    command: [sh, -c, "echo attempt $SHOAL_ATTEMPT generation $SHOAL_GENERATION;
      if [ $SHOAL_INDEX = 1 ] && [ $SHOAL_ATTEMPT -lt @DEATHS@ ]; then sleep 0.2; kill -KILL $$; fi;
      test $SHOAL_ATTEMPT -ge @DEATHS@ || while :; do sleep 0.02; done"]
"""
RULES = """\
name: rules
roles:
  worker:
    replicas: 3
    restart: {backoff: 10ms}
    on_exit: [{code: 40-49, action: ignore}, {code: 3, action: retry}]
    on_log: [{line: "*link is down*", action: retry}]
    command: [sh, -c, "test $SHOAL_INDEX = 0 && exit 44; test $SHOAL_ATTEMPT = 1 && exit 0;
      test $SHOAL_INDEX = 1 && exit 3; echo error, the link is down again; while :; do sleep 0.02; done"]
"""
ELASTIC = """\
name: elastic
roles:
  worker:
    replicas: 1
    max: 4
    command: [sh, -c, "trap 'echo saved $SHOAL_INDEX; exit 0' TERM; echo up $SHOAL_INDEX; while :; do sleep 0.02; done"]
"""
STOLEN = """\
name: stolen
roles:
  worker:
    replicas: 1
    ports: [main]
    restart: {when: never}
    command: [sh, -c, "test $SHOAL_ATTEMPT = 1 && echo second at $SHOAL_PORT && exit 0;
      echo first at $SHOAL_PORT; while :; do sleep 0.02; done"]
"""


EXCLUDE = """\
name: exclude
roles:
  worker:
    replicas: 2
    restart: {backoff: 10ms, scope: @SCOPE@}
    on_exit: [{code: 79, action: exclude_host}]
    command: [sh, -c, "echo attempt $SHOAL_ATTEMPT; test $SHOAL_INDEX$SHOAL_ATTEMPT = 00 && exit 79; exit 0"]
"""


class LifecycleTest(harness.JobsTest):
    def test_a_task_leaves_a_host_that_a_rule_excludes(self):
        for scope in ("task", "job"):
            code, out, err = self.go(EXCLUDE.replace("@SCOPE@", scope), "--engine", "local-apart", env={"SHOAL_APART_HOSTS": "a,b"})
            self.assertEqual(code, 0, out + err)
            self.assertIn("host a is excluded for role worker: worker 0 exited with 79", out + err)
            self.assertIn("attempt 1", out)
            name = os.path.basename(self.home.job_dirs()[-1])
            shown = json.loads(self.home.run("show", name, "--json")[1])
            self.assertEqual([e["body"]["host"] for e in shown["events"] if e["type"] == "excluded"], ["a"])
            self.assertIn("host a is excluded", self.home.run("show", name)[1])

    def test_where_there_is_one_host_its_exclusion_ends_the_job(self):
        for engine, host in (("local", socket.gethostname()), ("local-apart", "a")):
            code, out, err = self.go(EXCLUDE.replace("@SCOPE@", "task"), "--engine", engine, env={"SHOAL_APART_HOSTS": "a"})
            self.assertEqual(code, 1, out + err)
            self.assertIn("worker 0 could not be started: ", err)
            self.assertIn(f"excluded for role worker: {host}, because worker 0 exited with 79", err)

    def test_an_excluded_host_stays_so_over_a_suspension(self):
        env, go = {"SHOAL_APART_HOSTS": "a,b"}, self.home.path("go")
        text = EXCLUDE.replace("@SCOPE@", "task").replace("exit 0", f"test -e {go} && exit 0; sleep 1000")
        process = self.home.start("run", self.home.write("job.yaml", text), "--engine", "local-apart", env=env)
        self.addCleanup(process.kill)
        self.assertTrue(harness.poll_until(lambda: "attempt 1" in harness.said(process), 30 * harness.PATIENCE), harness.said(process))
        code, out, err = self.home.run("suspend", "exclude", env=env)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(process.wait(30 * harness.PATIENCE), 130)
        self.home.write("go", "")
        code, out, err = self.home.run("resume", "exclude", env=env)
        self.assertEqual(code, 0, out + err)
        # The engine begins with the first host again, from where the launcher is sent away.
        self.assertIn("attempt 2", out)
        shown = json.loads(self.home.run("show", "exclude", "--json")[1])
        self.assertEqual([task["attempt"] for task in shown["tasks"]], [2, 1])
        self.assertEqual(self.home.leftovers(), [])

    def test_clients_start_when_the_service_answers(self):
        code, out, err = self.go(SERVICE)
        self.assertEqual(code, 0, out + err)
        self.assertEqual((out + err).count("status 200"), 2, out + err)

    def test_a_service_that_never_answers_is_named(self):
        text = SERVICE.replace("path: /}, every: 20ms", "path: /no}, timeout: 4s").replace(
            "after: {role: web}", "after: {role: web, when: ready}").replace("    follows:", "    restart: {limit: 0}\n    follows:")
        code, out, err = self.go(text)
        self.assertEqual(code, 1, out + err)
        self.assertIn("it was not ready within 4.0 s: GET /no was answered with 404", out + err)

    def test_processes_of_a_task(self):
        code, out, err = self.go(PROCESSES.replace("@CODE@", "0"))
        self.assertEqual(code, 0, out + err)
        for index in range(2):
            for rank in range(3):
                self.assertIn(f"[{rank}] index {index} rank {rank} of 3", out + err)
        code, out, err = self.go(PROCESSES.replace("@CODE@", "$SHOAL_LOCAL_RANK"))
        self.assertEqual(code, 1, out + err)
        self.assertRegex(out + err, r"worker \d exited with [12] in its process [12]")

    def test_all_start_again_together(self):
        code, out, err = self.go(TOGETHER.replace("@DEATHS@", "1"))
        self.assertEqual(code, 0, out + err)
        self.assertEqual((out + err).count("attempt 1 generation 2"), 3, out + err)
        self.assertIn("worker 1 was killed by signal 9 (SIGKILL); all tasks of the job are started again", out + err)
        code, out, err = self.go(TOGETHER.replace("@DEATHS@", "2"))
        self.assertEqual(code, 1, out + err)
        self.assertIn("the job was restarted 1 time already and the limit is 1", out + err)

    def test_rules_of_ends_and_lines(self):
        code, out, err = self.go(RULES, "--json")
        self.assertEqual(code, 0, out + err)
        events = [json.loads(line) for line in out.splitlines()]
        ends = {(e["index"], e["attempt"]): e for e in events if e.get("event") == "task" and e.get("state") == "ended"}
        self.assertFalse(ends[0, 0]["will_restart"])
        self.assertTrue(ends[1, 0]["will_restart"])
        self.assertTrue(ends[2, 0]["will_restart"])
        self.assertIn("on_log", ends[2, 0]["text"])

    def test_a_stolen_port_is_named_and_the_job_goes_elsewhere(self):
        process = self.home.start("run", self.home.write("job.yaml", STOLEN))
        ports = harness.poll_until(lambda: re.findall(r"first at (\d+)", harness.said(process)), 30 * harness.PATIENCE)
        self.assertTrue(ports, harness.said(process))
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            thief.bind(("127.0.0.1", int(ports[0])))
            thief.listen(8)
            harness.poll_until(lambda: process.poll() is not None, 30 * harness.PATIENCE)
        said = harness.said(process)
        self.assertEqual(process.poll(), 0, said)
        self.assertIn(f"its port {ports[0]} is taken: process {os.getpid()} (", said)
        again = re.findall(r"second at (\d+)", said)
        self.assertEqual(len(again), 1, said)
        self.assertNotEqual(again[0], ports[0])
        self.assertEqual(self.home.leftovers(), [])

    def test_a_role_is_made_larger_and_smaller(self):
        process = self.home.start("run", self.home.write("job.yaml", ELASTIC))

        def seen(text, times=1):
            harness.poll_until(lambda: harness.said(process).count(text) >= times, 30 * harness.PATIENCE)
            self.assertEqual(harness.said(process).count(text), times, harness.said(process))

        seen("up 0")
        code, out, err = self.home.run("scale", "elastic", "worker=3")
        self.assertEqual(code, 0, out + err)
        seen("up 1")
        seen("up 2")
        code, out, err = self.home.run("scale", "elastic", "worker=1")
        self.assertEqual(code, 0, out + err)
        seen("saved 1")
        seen("saved 2")
        # The same indices again, when those who had them have ended.
        harness.poll_until(lambda: self.home.run("scale", "elastic", "worker=2")[0] == 0, 30 * harness.PATIENCE)
        seen("up 1", 2)
        code, _, err = self.home.run("scale", "elastic", "worker=5")
        self.assertNotEqual(code, 0)
        self.assertIn("got 5, expected from 1 to 4", err)
        code, _, err = self.home.run("scale", "elastic", "worker")
        self.assertEqual(code, 2)
        self.assertIn("expected ROLE=NUMBER", err)
        self.assertEqual(self.home.run("stop", "elastic")[0], 0)
        harness.poll_until(lambda: process.poll() is not None, 30 * harness.PATIENCE)
        self.assertEqual(self.home.leftovers(), [])

    def test_what_cannot_be_is_refused_with_the_place(self):
        code, _, err = self.home.run("plan", self.home.write("bad.yaml", SERVICE.replace("after: {role: web}", "after: {role: client}")))
        self.assertEqual(code, 2)
        self.assertIn("roles.client.after.role: got a role that itself waits for 'client'", err)


if __name__ == "__main__":
    unittest.main()
