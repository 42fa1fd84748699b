"""Data and models in HDFS by WebHDFS: Hadoop's own name nodes and data nodes, in one process.

Skipped (77) without Java and Maven, or if Maven Central cannot be reached: the jars are 104 MB, and are kept in the cache directory.
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "..", "..", "bench")]
import harness  # noqa: E402
import logistic_test  # noqa: E402
import measure  # noqa: E402

VERSION = "3.4.2"
JARS = os.path.join(measure.CACHE, f"hadoop-{VERSION}")
POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>shoal</groupId><artifactId>tests</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.hadoop</groupId><artifactId>hadoop-minicluster</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>
"""


def find_jars():
    """True if the jars are there, or could be fetched."""
    if not shutil.which("java") or not shutil.which("mvn"):
        return False
    if os.path.isdir(JARS):
        return True
    making = f"{JARS}.making"
    shutil.rmtree(making, ignore_errors=True)
    os.makedirs(making)
    with open(os.path.join(making, "pom.xml"), "w", encoding="ascii") as f:
        f.write(POM)
    done = subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"], cwd=making,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=900)
    if done.returncode == 0:
        os.rename(os.path.join(making, "jars"), JARS)
    shutil.rmtree(making, ignore_errors=True)
    return done.returncode == 0


class Hdfs(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.log = open(self.home.path("hdfs.log"), "w", encoding="utf-8")
        self.addCleanup(self.log.close)
        self.cluster = subprocess.Popen(
            ["java", "-Xmx700m", "-cp", f"{JARS}/*", os.path.join(HERE, "MiniHdfs.java"), self.home.path("hdfs")],
            stdin=subprocess.PIPE, stdout=self.log, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.stop)
        urls = self.said("READY").split()[1:]
        self.place = "webhdfs://" + ",".join(url.replace("http://", "") for url in urls)

    def stop(self):
        self.cluster.kill()
        self.cluster.wait()
        self.cluster.stdin.close()

    def said(self, word):
        """The line of the cluster's output, which is Hadoop's log too, that begins so."""
        def find():
            with open(self.log.name, encoding="utf-8") as log:
                return next((line for line in log if line.startswith(word) and line.endswith("\n")), None)
        line = harness.poll_until(find, 120, pause=0.2)
        self.assertIsNotNone(line, "HDFS did not start, or its name node did not take over")
        return line

    def shoal(self, *arguments, code=0, user="ann"):
        got, out, err = self.home.run(*arguments, env={"HADOOP_USER_NAME": user}, seconds=100)
        self.assertEqual(got, code, out + err)
        return out if code == 0 else err

    def parts(self):
        paths = []
        for i in range(3):
            paths.append(self.home.path(f"part {i}+.svm"))
            logistic_test.write_examples(paths[-1], 20_000, i)
        self.shoal("data", "copy", *paths, f"{self.place}/data/clicks/")
        return paths

    def test_reads_lists_and_writes(self):
        paths = self.parts()
        listed = [json.loads(line) for line in
                  self.shoal("data", "--json", "ls", f"{self.place}/data/clicks/part*").splitlines()]
        self.assertEqual([one["bytes"] for one in listed], [os.path.getsize(path) for path in paths])
        self.assertIn("60000 records", self.shoal("data", "count", f"{self.place}/data/clicks/"))
        long = self.home.path("long")
        with open(long, "wb") as f:
            for i in range(40):
                f.write(bytes([i]) * (1 << 20))
        for _ in range(2):  # the second replaces the first
            self.shoal("data", "copy", long, f"{self.place}/data/long")
        self.shoal("data", "copy", f"{self.place}/data/long", self.home.path("back"))
        with open(long, "rb") as ours, open(self.home.path("back"), "rb") as theirs:
            self.assertTrue(ours.read() == theirs.read())
        self.assertNotIn("saving", self.shoal("data", "ls", f"{self.place}/data/*"))
        for what in (("ls", f"{self.place}/closed/"), ("copy", long, f"{self.place}/closed/x")):
            err = self.shoal("data", *what, code=3)
            self.assertIn("AccessControlException", err)
            self.assertIn("the user is ann", err)
        self.assertIn("no such file", self.shoal("data", "ls", f"{self.place}/none", code=4))

    def test_trains_the_same_after_a_failover(self):
        paths = self.parts()
        digests = []
        for data, output in ((paths, self.home.path("near")), ([f"{self.place}/data/clicks/part*"], f"{self.place}/data/models/far")):
            out = self.shoal("train", "logistic", "--data", *data, "--output", output, "--workers", "2", "--epochs", "2",
                             "--deterministic", "--json")
            digests.append(json.loads(out.strip().splitlines()[-1])["digest"])
            if len(digests) == 1:
                self.cluster.stdin.write("failover\n")
                self.cluster.stdin.flush()
                self.said("DONE")
        self.assertEqual(digests[0], digests[1])
        self.assertIn("model.json", self.shoal("data", "ls", f"{self.place}/data/models/far/"))


if __name__ == "__main__":
    if not find_jars():
        print("skipped: there is no Java and Maven, or Hadoop's jars cannot be fetched")
        sys.exit(77)
    unittest.main()
