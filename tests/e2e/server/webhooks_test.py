"""Webhooks: real receivers that accept, fail, hang, redirect and vanish; signatures; the rule about addresses; a killed server."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server, job_text  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, poll_until  # noqa: E402  pylint: disable=wrong-import-position

ALLOW = ("--webhook-allow", "127.0.0.0/8")


class Receiver:
    """An HTTP server that records requests; `answer` is called with each (a status, headers, or None: never)."""

    def __init__(self, answer=lambda request: (200, {})):
        self.requests, self._released = [], threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = {"path": self.path, "headers": dict(self.headers), "body": body}
                receiver.requests.append(request)
                reply = answer(request)
                if reply is None:
                    receiver._released.wait()  # pylint: disable=protected-access
                    return
                self.send_response(reply[0])
                for name, value in reply[1].items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/hook?key=canary-77"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._released.set()
        self.http.shutdown()
        self.http.server_close()

    def events(self, job):
        found = []
        for request in list(self.requests):
            message = json.loads(request["body"])
            if message.get("data", {}).get("job") == job:
                found.append(message["data"]["event"])
        return found

    def wait(self, condition, seconds=60):
        return poll_until(condition, seconds * PATIENCE, 0.05)


def signature(secret, request):
    headers = {name.lower(): value for name, value in request["headers"].items()}
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request["body"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


def set_hook(server, name, url, team="default", token="", **fields):
    path = f"/teams/{team}/webhooks/{name}" if team else f"/webhooks/{name}"
    return server.request("PUT", path, {"url": url, **fields}, token)


def hook_of(server, name, team="default"):
    path = f"/teams/{team}/webhooks" if team else "/webhooks"
    return next(item for item in server.get(path).json["items"] if item["name"] == name)


class WebhooksTest(unittest.TestCase):
    def test_a_job_is_told_signed_and_in_order(self):
        with Server(options=ALLOW) as server, Receiver() as receiver:
            reply = set_hook(server, "ops", receiver.url)
            self.assertEqual(reply.status, 200, reply)
            secret = reply.json["secret"]
            self.assertNotIn("canary", json.dumps(reply.json))
            job = server.submit(job_text(script="true"), team="default")
            server.wait_for_end(job)
            self.assertTrue(receiver.wait(lambda: "succeeded" in receiver.events(job)))
            self.assertEqual(receiver.events(job), ["submitted", "running", "succeeded"])
            for request in receiver.requests:
                headers = {name.lower(): value for name, value in request["headers"].items()}
                self.assertEqual(headers["webhook-signature"], signature(secret, request))
                self.assertEqual(request["path"], "/hook?key=canary-77")
                message = json.loads(request["body"])
                self.assertEqual(message["type"], "job." + message["data"]["event"])
                self.assertEqual((message["data"]["team"], message["data"]["user"]), ("default", "admin"))
            self.assertTrue(poll_until(lambda: hook_of(server, "ops")["delivered"] == 3, 20 * PATIENCE))
            metrics = server.get("/metrics").body.decode()
            self.assertIn("shoal_webhook_messages_total 3\n", metrics)
            # The URL and the key are in no file in the clear.
            for root, _, files in os.walk(server.state):
                for file in files:
                    with open(os.path.join(root, file), "rb") as f:
                        text = f.read()
                    self.assertNotIn(b"canary-77", text, file)
                    self.assertNotIn(secret.encode(), text, file)

    def test_command_and_slack(self):
        with Server(options=ALLOW) as server, Receiver() as receiver:
            url_file = server.home.write("url", receiver.url + "\n")
            code, out, err = server.shoal("webhook", "set", "chat", "--format", "slack", "--url-file", url_file,
                                          "--events", "failed,cancelled")
            self.assertEqual(code, 0, err)
            self.assertIn("whsec_", out)
            job = server.submit(job_text(script="exit 3"), team="default")
            server.wait_for_end(job)
            self.assertTrue(receiver.wait(lambda: receiver.requests))
            message = json.loads(receiver.requests[0]["body"])
            self.assertEqual(list(message), ["text"])
            self.assertIn("* failed: ", message["text"])
            self.assertIn(job, message["text"])
            code, out, err = server.shoal("webhook", "list")
            self.assertEqual(code, 0, err)
            self.assertIn("failed,cancelled", out)
            self.assertNotIn("canary", out)
            code, _, err = server.shoal("webhook", "remove", "chat")
            self.assertEqual(code, 0, err)
            self.assertEqual(server.shoal("webhook", "remove", "chat")[0], 4)
            self.assertEqual(len(receiver.requests), 1)

    def test_failures_are_retried_and_a_hanging_receiver_delays_no_other(self):
        answers = [(503, {}), (429, {"Retry-After": "1"})]
        with Server(options=ALLOW) as server, Receiver(lambda _: answers.pop(0) if answers else (200, {})) as flaky, \
                Receiver(lambda _: None) as hangs, Receiver() as works:
            for name, receiver in (("flaky", flaky), ("hangs", hangs), ("works", works)):
                self.assertEqual(set_hook(server, name, receiver.url).status, 200)
            job = server.submit(job_text(script="true"), team="default")
            self.assertTrue(works.wait(lambda: "succeeded" in works.events(job)))
            self.assertTrue(hangs.wait(lambda: hangs.requests))
            self.assertTrue(flaky.wait(lambda: "succeeded" in flaky.events(job)))
            self.assertEqual(flaky.events(job), ["submitted"] * 3 + ["running", "succeeded"])
            ids = [{k.lower(): v for k, v in r["headers"].items()}["webhook-id"] for r in flaky.requests[:3]]
            self.assertEqual(len(set(ids)), 1)

    def test_redirects_and_addresses_are_refused(self):
        with Server() as server, Receiver() as receiver:
            for url in (receiver.url, receiver.url.replace("127.0.0.1", "localhost"), "http://169.254.169.254/latest",
                        f"http://[::ffff:127.0.0.1]:{receiver.http.server_address[1]}/"):
                self.assertEqual(set_hook(server, "inside", url).status, 200)
                server.submit(job_text(script="true"), team="default")
                self.assertTrue(poll_until(lambda: "error" in hook_of(server, "inside"), 30 * PATIENCE))
                error = hook_of(server, "inside")["error"]
                self.assertIn("--webhook-allow", error)
            self.assertEqual(receiver.requests, [])
        with Server(options=ALLOW) as server, Receiver() as target, \
                Receiver(lambda _: (302, {"Location": target.url})) as redirects:
            set_hook(server, "moves", redirects.url)
            server.submit(job_text(script="true"), team="default")
            self.assertTrue(poll_until(lambda: "redirects are not followed" in hook_of(server, "moves").get("error", ""),
                                       30 * PATIENCE))
            self.assertEqual(target.requests, [])

    def test_a_killed_server_goes_on(self):
        accept = threading.Event()
        with Server(options=ALLOW) as server, Receiver(lambda _: (200 if accept.is_set() else 500, {})) as receiver:
            set_hook(server, "ops", receiver.url, "")
            job = server.submit(job_text(script="true"), team="default")
            server.wait_for_end(job)
            self.assertTrue(receiver.wait(lambda: receiver.requests))
            server.kill()
            accept.set()
            receiver.requests.clear()
            server.start()
            self.assertTrue(receiver.wait(lambda: "succeeded" in receiver.events(job)))
            self.assertEqual(receiver.events(job), ["submitted", "running", "succeeded"])

    def test_rights_and_bad_input(self):
        with Server() as server:
            operator = server.make_user("olga", "red", "operator")
            member = server.make_user("max", "red", "member")
            other = server.make_user("bob", "blue", "operator")
            url = "https://hooks.example.org/x"
            self.assertEqual(set_hook(server, "ops", url, "red", operator).status, 200)
            self.assertEqual(set_hook(server, "ops", url, "red", member).status, 403)
            self.assertEqual(set_hook(server, "ops", url, "", operator).status, 403)
            self.assertIn(set_hook(server, "ops", url, "red", other).status, (403, 404))
            self.assertNotIn("secret", server.get("/teams/red/webhooks", member).json["items"][0])
            for fields in ({"url": "ftp://x/"}, {"url": "http://u:p@h/"}, {"url": url, "events": ["exploded"]},
                           {"url": url, "secret": "whsec_short"}, {"url": url, "format": "xml"}, {}):
                reply = server.request("PUT", "/teams/red/webhooks/new", fields, operator)
                self.assertIn(reply.status, (400, 422), (fields, reply))
            reply = server.request("PUT", "/teams/red/webhooks/-new", {"url": url}, operator)
            self.assertIn(reply.status, (400, 422), reply)


if __name__ == "__main__":
    unittest.main()
