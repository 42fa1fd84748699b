"""Secrets: set, used by jobs of a server and of this machine, and found nowhere else. The values are canaries, which are searched
for in every file, answer and process list."""
import base64
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, Home, poll_until as poll  # noqa: E402  pylint: disable=wrong-import-position

CANARY = "canary-5e1f-hunter2"
JOB = """\
name: secret
env:
  PASSWORD: {secret: db}
  URL: "db:{{shoal.secret.db}}/x"
  KEY_FILE: {secret_file: raw}
roles:
  worker:
    replicas: 1
    command: [sh, -c, '%s']
"""
# Says that it has the secrets without printing them, waits for a file, and ends.
CHECK = ('test "$(printf %%s "$PASSWORD" | sha256sum | cut -c1-8)" = %s && test "$URL" = "db:$PASSWORD/x" '
         '&& test "$(stat -c %%a "$KEY_FILE")" = 600 && test "$(wc -c < "$KEY_FILE")" = 3 && echo all-there; '
         'while [ ! -e %s ]; do sleep 0.05; done')


def poll_until(condition):
    return poll(condition, 30 * PATIENCE)


def forms(value):
    """The value as it could lie somewhere: plain, and in the three alignments of base64 without their ends."""
    yield value.encode()
    for shift in range(3):
        encoded = base64.b64encode(b"x" * shift + value.encode())
        yield encoded[4 if shift else 0:-4]


def holds(path, values):
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return False
    return any(form in text for value in values for form in forms(value))


def files_with(root, *values):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names
                  if holds(os.path.join(folder, name), values))


def arguments_with(value):
    """The command lines of all processes but this one that contain it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid() and holds(f"/proc/{pid}/cmdline", [value]):
            found.append(pid)
    return found


def script(go):
    import hashlib  # pylint: disable=import-outside-toplevel
    return CHECK % (hashlib.sha256(CANARY.encode()).hexdigest()[:8], go)


class ServerSecrets(unittest.TestCase):
    def test_a_job_of_the_team_gets_them_and_nobody_else(self):
        with Server() as server:
            member = server.make_user("mia", "red", "member")
            operator = server.make_user("olga", "red", "operator")
            other = server.make_user("otto", "blue", "operator")
            secrets = "/teams/red/secrets"
            self.assertEqual(server.request("PUT", secrets + "/db", {"value": CANARY}, member).status, 403)
            self.assertEqual(server.request("PUT", secrets + "/db", {"value": CANARY}, other).status, 404)
            self.assertEqual(server.request("PUT", secrets + "/db", {"value": CANARY}, operator).status, 204)
            raw = {"base64": base64.b64encode(b"\0\xff\n").decode()}
            self.assertEqual(server.request("PUT", secrets + "/raw", raw, operator).status, 204)
            listed = server.request("GET", secrets, None, member)
            self.assertEqual([item["name"] for item in listed.json["items"]], ["db", "raw"])
            self.assertNotIn(CANARY.encode(), listed.body)

            go = server.home.path("go")
            text = JOB % script(go)
            refused = server.request("POST", "/jobs", {"file": text, "team": "blue"}, other)
            self.assertEqual(refused.status, 404, refused)
            self.assertIn("env.PASSWORD: there is no secret db of team blue", refused.detail)
            job = server.request("POST", "/jobs", {"file": text, "team": "red"}, member)
            self.assertEqual(job.status, 201, job)
            identity = job.json["id"]
            log = f"/jobs/{identity}/logs/worker-0/0"
            self.assertTrue(poll_until(lambda: b"all-there" in server.request("GET", log, None, member).body),
                            server.request("GET", f"/jobs/{identity}", None, member))
            # While it runs only its own delivery holds the values.
            directory = os.path.join(server.state, "jobs", identity)
            self.assertEqual(files_with(server.state, CANARY), [os.path.join(directory, "secrets")])
            self.assertEqual(arguments_with(CANARY), [])
            copy = server.home.path("copy")
            self.assertEqual(server.home.run("server", "backup", copy, "--state", server.state)[0], 0)
            self.assertTrue(os.path.exists(os.path.join(copy, "jobs", identity, "job.json")))
            self.assertEqual(files_with(copy, CANARY), [])
            open(go, "w", encoding="utf-8").close()
            server.wait_for(identity, ("succeeded",))
            self.assertTrue(poll_until(lambda: not files_with(server.state, CANARY)), files_with(server.state, CANARY))
            self.assertEqual(files_with(server.home.path("."), CANARY), [])
            for target in (f"/jobs/{identity}", f"/jobs/{identity}/events", f"/jobs/{identity}/tasks", log, "/audit"):
                self.assertNotIn(CANARY.encode(), server.request("GET", target, None, server.admin).body)
            self.assertEqual(server.request("DELETE", secrets + "/db", None, operator).status, 204)
            self.assertEqual(server.request("DELETE", secrets + "/db", None, operator).status, 404)

    def test_commands_over_a_server(self):
        with Server() as server:
            token = server.make_user("olga", "red", "operator")
            value = server.home.path("value")
            with open(value, "w", encoding="utf-8") as file:
                file.write(CANARY)
            self.assertEqual(server.shoal("secret", "set", "db", "--file", value, token=token)[0], 0)
            self.assertIn("db", server.shoal("secret", "list", token=token)[1])
            code, out, err = server.shoal("secret", "remove", "db", token=token)
            self.assertEqual(code, 0, out + err)
            self.assertNotIn("db", server.shoal("secret", "list", token=token)[1])

    def test_bad_values_are_refused_in_one_sentence(self):
        with Server() as server:
            target = "/teams/default/secrets/x"
            for body, word in (({}, "value"), ({"value": "a", "base64": "YQ=="}, "one of the fields"),
                               ({"base64": "no base64!"}, "base64"), ({"value": "x" * 66000}, "at most 65536")):
                reply = server.request("PUT", target, body, server.admin)
                self.assertIn(reply.status, (400, 422), reply)
                self.assertIn(word, reply.body.decode())
            reply = server.request("PUT", "/teams/default/secrets/-x", {"value": "a"}, server.admin)
            self.assertIn(reply.status, (400, 422), reply)

    def test_a_resumed_job_reads_them_again(self):
        with Server() as server:
            server.request("PUT", "/teams/default/secrets/db", {"value": "first"}, server.admin)
            text = ("name: again\nenv: {P: {secret: db}}\nroles: {worker: {replicas: 1, command: "
                    "[sh, -c, 'echo \"length ${#P}\"; exec sleep 1000']}}\n")
            job = server.submit(text)
            log = f"/jobs/{job}/logs/worker-0/"
            self.assertTrue(poll_until(lambda: b"length 5" in server.request("GET", log + "0", None, server.admin).body))
            server.request("PUT", "/teams/default/secrets/db", {"value": "second"}, server.admin)
            server.request("POST", f"/jobs/{job}/suspend", {}, server.admin)
            server.wait_for(job, ("suspended",))
            kept = os.path.join(server.state, "jobs", job, "secrets")
            self.assertTrue(poll_until(lambda: not os.path.exists(kept)))
            server.request("POST", f"/jobs/{job}/resume", {}, server.admin)

            def told():
                logs = server.request("GET", f"/jobs/{job}/logs", None, server.admin).json["items"]
                return any(b"length 6" in server.request("GET", log + str(one["attempt"]), None, server.admin).body
                           for one in logs)
            self.assertTrue(poll_until(told))
            server.request("POST", f"/jobs/{job}/stop", {"now": True}, server.admin)
            server.wait_for(job, ("cancelled",))


class OwnSecrets(unittest.TestCase):
    def test_a_job_of_this_machine(self):
        with Home() as home:
            os.mkdir(home.path("in"))
            value = home.write("in/value", CANARY)
            raw = home.write("in/raw", b"\0\xff\n")
            for name, file in (("db", value), ("raw", raw)):
                code, _, err = home.run("secret", "set", name, "--file", file)
                self.assertEqual(code, 0, err)
            os.remove(value)
            _, listed, _ = home.run("secret", "list")
            self.assertIn("db", listed)
            go = home.write("go", "")
            job = home.write("job.yaml", JOB % script(go))
            code, plan, err = home.run("plan", job)
            self.assertEqual(code, 0, err)
            self.assertIn("{{shoal.secret.db}}", plan)
            code, out, err = home.run("run", job, seconds=120)
            self.assertEqual(code, 0, out + err)
            self.assertIn("all-there", out)
            self.assertEqual(files_with(home.path("."), CANARY), [])
            self.assertEqual(home.run("secret", "remove", "db")[0], 0)
            code, _, err = home.run("run", job)
            self.assertEqual(code, 4, err)
            self.assertIn("there is no secret db; make it with `shoal secret set db`", err)
            self.assertRegex(err, r"job.yaml:3:\d+: env.PASSWORD")

    def test_what_the_terminal_gives(self):
        with Home() as home:
            for text, bytes_ in ((b"two\nlines\n", 9), (b"x", 1)):
                done = subprocess.run([home.binary, "secret", "set", "one"], input=text, env=home.environ(), check=False,
                                      capture_output=True, timeout=60 * PATIENCE)
                self.assertEqual(done.returncode, 0, done)
                _, listed, _ = home.run("secret", "list", "--json")
                self.assertEqual(json.loads(listed.splitlines()[0])["bytes"], bytes_)
            code, _, err = home.run("secret", "set", "one")
            self.assertNotEqual(code, 0)
            self.assertIn("expected at least one byte", err)
            code, _, err = home.run("secret", "set", "a/b", "--file", home.write("f", "x"))
            self.assertEqual(code, 2, err)
            code, _, err = home.run("secret", "list", "--team", "red")
            self.assertIn("without a server there are no teams", err)


if __name__ == "__main__":
    unittest.main()
