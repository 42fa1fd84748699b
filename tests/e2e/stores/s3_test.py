"""Data and models in an S3 store: moto's server, which checks signatures, and boto3, which reads what we write.

Skipped (77) where the peers' environment is missing; script/test makes it when PyPI can be reached.
"""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import harness  # noqa: E402
import logistic_test  # noqa: E402
import s3_store  # noqa: E402

_DOWNLOAD = """\
import boto3, os, sys
folder, prefix = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])
for one in s3.list_objects_v2(Bucket="bucket", Prefix=prefix)["Contents"]:
    s3.download_file("bucket", one["Key"], os.path.join(folder, os.path.basename(one["Key"])))
    print(os.path.basename(one["Key"]), one["Size"], one["ETag"])
"""


class Stores(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.store = s3_store.S3Store()
        self.addCleanup(self.store.close)
        self.env, self.peer = self.store.env, self.store.peer

    def shoal(self, *arguments, code=0, env=None):
        got, out, err = self.home.run(*arguments, env={**self.env, **(env or {})}, seconds=60)
        self.assertEqual(got, code, out + err)
        return out if code == 0 else err

    def parts(self, count=3):
        """Files of examples here and, byte by byte the same, in the bucket, with names that need encoding."""
        paths = []
        for i in range(count):
            paths.append(self.home.path(f"part {i}+.svm"))
            logistic_test.write_examples(paths[-1], 5_000, i)
        self.shoal("data", "copy", *paths, "s3://bucket/clicks/")
        return paths

    def test_data_commands(self):
        paths = self.parts()
        names = [f"s3://bucket/clicks/{os.path.basename(path)}" for path in paths]
        listed = [json.loads(line) for line in self.shoal("data", "--json", "ls", "s3://bucket/clicks/part*").splitlines()]
        self.assertEqual([one["uri"] for one in listed], names)
        self.assertEqual([one["bytes"] for one in listed], [os.path.getsize(path) for path in paths])
        self.assertIn("15000 records", self.shoal("data", "count", "s3://bucket/clicks/"))
        with open(paths[1], encoding="ascii") as f:
            self.assertEqual(self.shoal("data", "head", "-n", "2", names[1]), f.readline() + f.readline())
        self.assertIn("no such object", self.shoal("data", "ls", "s3://bucket/none", code=4))
        refused = self.shoal("data", "ls", names[0], code=3, env={"AWS_SECRET_ACCESS_KEY": "wrong"})
        self.assertIn("SignatureDoesNotMatch", refused)
        self.assertIn("check the access key", refused)
        self.assertNotIn(self.env["AWS_SECRET_ACCESS_KEY"], refused)

    def test_a_long_object_is_uploaded_in_parts(self):
        path = self.home.path("long")
        with open(path, "wb") as f:
            for i in range(20):
                f.write(bytes([i]) * (1 << 20))
        self.shoal("data", "copy", path, "s3://bucket/long/object")
        said = self.peer(_DOWNLOAD, self.home.root, "long/", env=self.env)
        self.assertRegex(said, r'object 20971520 "[0-9a-f]{32}-3"')
        with open(path, "rb") as ours, open(self.home.path("object"), "rb") as theirs:
            self.assertTrue(ours.read() == theirs.read())
        self.shoal("data", "copy", "s3://bucket/long/object", self.home.path("back/"))
        with open(path, "rb") as ours, open(self.home.path("back", "object"), "rb") as theirs:
            self.assertTrue(ours.read() == theirs.read())

    def train(self, *data, output, workers="2"):
        out = self.shoal("train", "logistic", "--data", *data, "--output", output, "--workers", workers, "--epochs", "2",
                         "--deterministic", "--json")
        return json.loads(out.strip().splitlines()[-1])

    def test_trains_the_same_from_a_store(self):
        paths = self.parts()
        near = self.train(*paths, output=self.home.path("near"))
        far = self.train("s3://bucket/clicks/part*", output="s3://bucket/models/far")
        self.assertEqual(far["digest"], near["digest"])
        os.mkdir(self.home.path("far"))
        self.peer(_DOWNLOAD, self.home.path("far"), "models/far/", env=self.env)
        self.assertEqual(sorted(os.listdir(self.home.path("far"))), sorted(os.listdir(self.home.path("near"))))
        with open(self.home.path("far", "weights.bin"), "rb") as one, open(self.home.path("near", "weights.bin"), "rb") as other:
            self.assertTrue(one.read() == other.read())
        # A folder with other things is no model's.
        err = self.shoal("train", "logistic", "--data", paths[0], "--output", "s3://bucket/clicks", code=2)
        self.assertIn("no model.json", err)

    def test_trains_words_from_a_store(self):
        text = self.home.path("text.txt")
        with open(text, "w", encoding="ascii") as f:
            for i in range(20_000):
                f.write(f"the word{i % 50} is near word{(i + 1) % 50} and word{i % 7}\n")
        self.shoal("data", "copy", text, "s3://bucket/text/text.txt")
        arguments = ["--dim", "8", "--epochs", "1", "--threads", "1", "--seed", "7", "--json"]
        digests = []
        for source, output in ((text, self.home.path("near")), ("s3://bucket/text/text.txt", "s3://bucket/models/words")):
            out = self.shoal("train", "word2vec", "--data", source, "--output", output, *arguments)
            digests.append(json.loads(out.strip().splitlines()[-1])["digest"])
        self.assertEqual(digests[0], digests[1])
        self.assertIn("model.json", self.shoal("data", "ls", "s3://bucket/models/words/"))


if __name__ == "__main__":
    if not s3_store.installed():
        print("skipped: moto is not installed; script/test with a network installs it")
        sys.exit(77)
    unittest.main()
