"""Jobs that read the same data find it on their host: the second one reads the first one's copies."""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults")]
import harness  # noqa: E402
import planted  # noqa: E402

JOB = """\
name: near
framework: shoal
env: {{SHOAL_CACHE: "{cache}"}}
learn: {{algorithm: word2vec, dim: 8, epochs: 1, deterministic: true, cache_data: {cache_data}}}
data: {{train: {{source: ["{first}", "{second}"], shard_by: worker}}}}
roles:
  server: {{replicas: 1, follows: worker}}
  worker: {{replicas: 2}}
limits: {{gather: 20s, deadline: 1m}}
outputs: {{model: "{model}"}}
"""


class DataCache(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.files = [self.home.path("first.txt"), self.home.path("second.txt")]
        for path in self.files:
            planted.write_corpus(path, 20_000)
        self.cache = self.home.path("near")

    def train(self, cache_data, job=JOB):
        """What `shoal show` tells of each worker's bytes, and the model's digest."""
        code, out, err = self.home.run("run", "--json", self.home.write("job.yaml", job.format(
            cache=self.cache, cache_data=cache_data, first=self.files[0], second=self.files[1],
            model=self.home.path("model"))))
        self.assertEqual(code, 0, err)
        done = json.loads(out.strip().splitlines()[-1])
        code, out, err = self.home.run("show", "--json", done["job"])
        self.assertEqual(code, 0, err)
        result = json.loads(out)["result"]
        return [result.get(f"bytes_read_by_worker_{i}") for i in range(2)], done["digest"]

    def test_copies_are_made_once_and_change_nothing(self):
        where_it_lies, digest = self.train("auto")
        self.assertEqual(where_it_lies, [None, None], "nothing is on a network here")
        sizes = [os.path.getsize(path) for path in self.files]
        copied, same = self.train("on")
        self.assertEqual(same, digest)
        self.assertEqual([w["copied"] for w in copied], sizes)
        kept, same = self.train("on")
        self.assertEqual(same, digest)
        self.assertEqual([w["kept"] for w in kept], sizes)
        self.assertEqual(len(os.listdir(os.path.join(self.cache, "names"))), 2)
        planted.write_corpus(self.files[1], 30_000)
        changed, other = self.train("on")
        self.assertNotEqual(other, digest)
        self.assertGreater(changed[1]["copied"], 0)


    def test_workers_take_the_parts_that_their_hosts_hold(self):
        """Two pretend hosts: each worker has a cache of its own, which the next job's other worker finds."""
        job = JOB.replace("deterministic: true", "deterministic: false")
        self.cache += "-{{shoal.index}}"
        sizes = [os.path.getsize(path) for path in self.files]
        copied, _ = self.train("on", job)
        self.assertEqual([(w["part"], w["copied"]) for w in copied], [(0, sizes[0]), (1, sizes[1])])
        caches = [self.home.path(name) for name in ("near-0", "near-1", "near")]
        for a, b in ((0, 2), (1, 0), (2, 1)):
            os.rename(caches[a], caches[b])
        kept, _ = self.train("on", job)
        self.assertEqual([(w["part"], w["kept"]) for w in kept], [(1, sizes[1]), (0, sizes[0])])
        # The result of this one depends on who trains what: it is copied once more.
        again, _ = self.train("on")
        self.assertEqual([(w["part"], w["copied"]) for w in again], [(0, sizes[0]), (1, sizes[1])])


if __name__ == "__main__":
    unittest.main()
