"""Versions of models that jobs make, `shoal models`, and `shoal publish` under load, kills and bad requests."""
import csv
import http.client
import io
import json
import os
import random
import re
import signal
import sys
import threading
import unittest
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402

TOKEN = "a secret of thirty-two letters.."


def write_people(path, count, seed):
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as f:
        f.write("y,id,age,town\n")
        for i in range(count):
            age, town = rng.gauss(40, 10), rng.randrange(5)
            f.write(f"{int(age / 10 + town + rng.gauss(0, 1) > 6)},k{i},{age if i % 7 else ''},town{town}\n")


class Published:
    """`shoal publish` until close; ask() is a request to it."""

    def __init__(self, home, *arguments):
        self.home = home
        self.process = home.start("publish", *arguments, "--port", "0", "--poll", "0.02", "--json")
        lines = harness.poll_until(self.lines, 30 * harness.PATIENCE)
        if not lines or lines[0].get("event") != "ready":
            raise AssertionError(self.output())
        self.host = re.sub("^http://", "", lines[0]["url"])

    def output(self):
        with open(self.process.log, encoding="utf-8") as f:
            return f.read()

    def lines(self):
        return [json.loads(line) for line in self.output().splitlines() if line.startswith("{") and line.endswith("}")]

    def ask(self, path, body=None, token=None):
        """(status, JSON) of a request."""
        headers = {"Authorization": "Bearer " + token} if token else {}
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        request = urllib.request.Request(f"http://{self.host}{path}", data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as e:
            return e.code, json.loads(e.read() or b"{}")

    def close(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60 * harness.PATIENCE)


class Serving(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.data = self.home.path("people.csv")
        write_people(self.data, 2000, 1)

    def shoal(self, *arguments, code=0):
        got, out, err = self.home.run(*arguments, seconds=100)
        self.assertEqual(got, code, err)
        return out if code == 0 else err

    def train(self, *arguments, algorithm="linear"):
        self.shoal("train", algorithm, "--data", self.data, "--label", "y", "--key", "id", "--output", self.home.path("ages"), *arguments)

    def versions(self):
        return [json.loads(line) for line in self.shoal("models", "ls", "--json").splitlines()]

    def publish(self, *arguments):
        published = Published(self.home, *arguments)
        self.addCleanup(lambda: published.process.poll() is None and published.close(signal.SIGKILL))
        return published

    def test_each_training_makes_a_version_that_stays(self):
        self.train()
        self.train(algorithm="fm")
        first, second = self.versions()
        self.assertEqual([(v["name"], v["version"]) for v in (first, second)], [("ages", 1), ("ages", 2)])
        self.assertEqual((first["metadata"]["algorithm"], second["metadata"]["algorithm"]), ("linear", "fm"))
        self.assertTrue(first["job"].startswith("linear-"))
        self.shoal("models", "export", "ages@1", self.home.path("first"))
        ours = self.shoal("predict", self.home.path("first"), "--data", self.data, "--output", "-")
        again = self.shoal("predict", os.path.join(self.home.home, "models", "ages", "files", first["folder"]), "--data", self.data,
                           "--output", "-")
        self.assertEqual(ours, again)
        self.shoal("models", "tag", "ages@1", "baseline")
        self.assertIn("protected by the tag baseline", self.shoal("models", "delete", "ages@1", code=1))
        self.train()
        self.shoal("models", "delete", "ages", "--keep", "1")
        self.assertEqual([(v["version"], v["tags"]) for v in self.versions()], [(1, ["baseline"]), (3, [])])
        self.assertIn("was deleted", self.shoal("models", "show", "ages@2", code=4))
        self.assertIn("did you mean 'ages'", self.shoal("models", "show", "agess", code=4))
        compared = json.loads(self.shoal("models", "compare", "ages@1", "ages@3", "--json"))
        self.assertNotIn("algorithm", compared["differences"])
        other = self.home.path("production")
        self.shoal("models", "promote", "ages@3", "--to", other)
        self.assertIn("promoted", self.shoal("models", "ls", "--registry", other))

    def test_no_registry_where_there_is_to_be_none(self):
        code, _, err = self.home.run("train", "linear", "--data", self.data, "--label", "y", "--output", self.home.path("m"),
                                     env={"SHOAL_REGISTRY": "none"}, seconds=100)
        self.assertEqual(code, 0, err)
        self.assertFalse(os.path.exists(os.path.join(self.home.home, "models")))

    def test_an_import_that_is_killed_leaves_no_version(self):
        self.train()
        big = self.home.path("big")
        os.mkdir(big)
        with open(os.path.join(big, "weights.bin"), "wb") as f:
            f.truncate(1 << 30)
        process = self.home.start("models", "import", big, "--name", "ages")
        files = os.path.join(self.home.home, "models", "ages", "files")
        self.assertTrue(harness.poll_until(lambda: len(os.listdir(files)) > 1, 30 * harness.PATIENCE))
        process.kill()
        process.wait()
        self.assertEqual([v["version"] for v in self.versions()], [1])
        self.train()
        self.assertEqual([v["version"] for v in self.versions()], [1, 2])

    def test_answers_are_those_of_predict(self):
        for algorithm in ("linear", "fm", "ffm"):
            self.train(algorithm=algorithm)
            out = self.shoal("predict", self.home.path("ages"), "--data", self.data, "--output", "-")
            expected = [row[1] for row in csv.reader(io.StringIO(out))][1:]
            with open(self.data, encoding="utf-8") as f:
                rows = [{"age": float(row["age"]) if row["age"] else None, "town": row["town"]} for row in csv.DictReader(f)]
            published = self.publish(self.home.path("ages"))
            status, reply = published.ask("/v1/models/ages:predict", {"instances": rows})
            self.assertEqual(status, 200, reply)
            self.assertEqual([f"{p:.6g}" for p in reply["predictions"]], expected)
            tensors = [{"name": name, "shape": [len(rows)], "datatype": kind, "data": [row[name] for row in rows]}
                       for name, kind in (("age", "FP64"), ("town", "BYTES"))]
            status, reply = published.ask("/v2/models/ages/infer", {"inputs": tensors})
            self.assertEqual(status, 200, reply)
            self.assertEqual([f"{p:.6g}" for p in reply["outputs"][0]["data"]], expected)
            self.assertEqual(published.close(), 0)

    def test_words_have_neighbours(self):
        with open(self.home.path("text"), "w", encoding="utf-8") as f:
            f.write("the king and the queen eat bread in the castle " * 400)
        self.shoal("train", "word2vec", "--data", self.home.path("text"), "--dim", "10", "--min-count", "1", "--output",
                   self.home.path("words"))
        published = self.publish("words")
        status, reply = published.ask("/v1/models/words:predict", {"instances": ["king"], "top": 3})
        self.assertEqual(status, 200, reply)
        told = json.loads(self.shoal("nearest", self.home.path("words"), "king", "-k", "3", "--json"))
        served = reply["predictions"][0]["neighbours"]
        self.assertEqual([n["word"] for n in served], [n["word"] for n in told["neighbours"]])
        self.assertEqual([f"{n['similarity']:.4f}" for n in served], [f"{n['similarity']:.4f}" for n in told["neighbours"]])
        status, reply = published.ask("/v1/models/words:vectors", {"instances": ["king", "bread"]})
        self.assertEqual((status, [len(v) for v in reply["vectors"]]), (200, [10, 10]))
        status, reply = published.ask("/v1/models/words:predict", {"instances": ["kign"]})
        self.assertEqual(status, 404)
        self.assertIn("the nearest is 'king'", reply["error"])

    def test_promotion_and_rollback_under_load_fail_no_request(self):
        for epochs in ("1", "2", "3"):
            self.train("--epochs", epochs)
        self.shoal("models", "promote", "ages@1")
        published = self.publish("ages")
        body = json.dumps({"instances": [{"age": 50, "town": "town1"}] * 2})
        ending, failed, asked = threading.Event(), [], []

        def load():
            connection = http.client.HTTPConnection(published.host, timeout=60)
            count = 0
            while not ending.is_set():
                connection.request("POST", "/v1/models/ages:predict", body)
                reply = connection.getresponse()
                text = reply.read()
                count += 1
                if reply.status != 200 or len(set(json.loads(text)["predictions"])) != 1:
                    failed.append((reply.status, text))
            connection.close()
            asked.append(count)

        peers = [threading.Thread(target=load) for _ in range(4)]
        for peer in peers:
            peer.start()

        def served(version):
            return lambda: published.ask("/v2/models/ages")[1]["versions"] == [str(version)]

        for version in (2, 3, 1, 3):
            self.shoal("models", "promote", f"ages@{version}")
            self.assertTrue(harness.poll_until(served(version), 30 * harness.PATIENCE))
        for version in (1, 3):
            self.shoal("rollback", "ages")
            self.assertTrue(harness.poll_until(served(version), 30 * harness.PATIENCE))
        ending.set()
        for peer in peers:
            peer.join()
        self.assertEqual(failed[:3], [])
        self.assertEqual(len(asked), 4)
        self.assertGreater(sum(asked), 100)
        self.assertEqual(published.close(), 0)

    def test_a_job_serves(self):
        self.train()
        job = self.home.write("endpoint.yaml", "name: endpoint\nroles:\n  server:\n    replicas: 1\n    command: "
                              "[\"@shoal\", publish, ages, --port, \"0\"]\n")
        process = self.home.start("run", job)
        place = harness.poll_until(lambda: re.search(r"ages@1 at http://(\S+)/v2", harness.said(process)), 60 * harness.PATIENCE)
        self.assertTrue(place, harness.said(process))
        connection = http.client.HTTPConnection(place.group(1), timeout=60)
        connection.request("POST", "/v1/models/ages:predict", json.dumps({"instances": [{"age": 50}]}))
        reply = connection.getresponse()
        self.assertEqual((reply.status, len(json.loads(reply.read())["predictions"])), (200, 1))
        connection.close()
        process.send_signal(signal.SIGINT)
        self.assertIn(process.wait(60 * harness.PATIENCE), (0, 130))

    def test_bad_requests_are_answered_and_leave_it_in_service(self):
        self.train()
        token = self.home.write("token", TOKEN + "\n")
        published = self.publish("ages@1", "--token-file", token)
        for body, word in ((b'{"instances": [{"age": NaN}]}', "instance 0"), (b"{", "JSON"), (b"\xff\xfe", "JSON"),
                           ({"instances": [{"agee": 1}]}, "did you mean 'age'"), ({"instances": [[]]}, "object"),
                           (b'{"instances": ' + b"[" * 10000, "JSON")):
            status, reply = published.ask("/v1/models/ages:predict", body, TOKEN)
            self.assertEqual(status, 400, reply)
            self.assertIn(word, reply["error"])
        self.assertEqual(published.ask("/v1/models/ages:predict", {"instances": []})[0], 401)
        status, reply = published.ask("/v1/models/ages:predict", {"instances": [{}] * 5000}, TOKEN)
        self.assertEqual(status, 413, reply)
        connection = http.client.HTTPConnection(published.host, timeout=60)
        connection.putrequest("POST", "/v2/models/ages/infer")
        connection.putheader("Authorization", "Bearer " + TOKEN)
        connection.putheader("Content-Length", str(1 << 30))
        connection.endheaders()
        self.assertEqual(connection.getresponse().status, 413)
        connection.close()
        self.assertEqual(published.ask("/v1/models/ages:predict", {"instances": [{}]}, TOKEN)[0], 200)

    def test_models_that_are_damaged_or_missing_are_not_served(self):
        self.train()
        self.assertIn("no model zips", self.shoal("publish", "zips", code=4))
        self.assertIn("there is no version 9; the newest is 1", self.shoal("publish", "ages@9", code=4))
        with open(self.home.path("ages", "weights.bin"), "r+b") as f:
            f.truncate(50)
        self.assertIn("weights.bin", self.shoal("publish", self.home.path("ages"), code=1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
