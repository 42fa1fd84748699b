"""Jobs whose data is on a real network file system. tests/cluster/moosefs.sh brings it up."""
import json
import os
import shutil
import sys

from cluster_jobs import ClusterJobs, check_near, main

NETWORK = os.environ.get("SHOAL_TEST_NETWORK", "")


class NetworkJobs(ClusterJobs):
    ENGINE = "local"

    def left(self):
        return []

    def train(self, source, model, deterministic=True):
        """What it said of itself."""
        file = self.write(f"""name: test
framework: shoal
env: {{SHOAL_CACHE: "{self.home}/cache-{{{{shoal.index}}}}"}}
learn: {{algorithm: word2vec, dim: 16, epochs: 1, min_count: 1, seed: 3, deterministic: {str(deterministic).lower()}}}
data: {{train: {{source: ["{source}/a", "{source}/b"], format: text, shard_by: worker}}}}
roles: {{server: 1, worker: 2}}
outputs: {{model: {self.path(model)}}}
""")
        done = json.loads(self.shoal("run", "--json", file).strip().splitlines()[-1])
        return done["digest"], json.loads(self.ask("show", "--json", done["job"]).stdout)["result"]

    def test_read_once_over_the_network_and_then_where_it_is(self):
        corpus = self.corpus()
        sources = [os.path.join(place, "data") for place in (self.home, NETWORK)]
        for place in sources:
            os.makedirs(place)
            for name in "ab":
                shutil.copy(corpus, os.path.join(place, name))
        self.addCleanup(shutil.rmtree, sources[1])
        size = os.path.getsize(corpus)
        digest, result = self.train(sources[0], "disk")
        self.assertNotIn("bytes_read_by_worker_0", result)
        # Each worker has a cache of its own: two hosts.
        for how, parts in (("copied", (0, 1)), ("kept", (0, 1))):
            same, result = self.train(sources[1], "network")
            self.assertEqual(same, digest)
            check_near(self, result, how, size, parts)
        for where in ("cache-0", "swap"), ("cache-1", "cache-0"), ("swap", "cache-1"):
            os.rename(*(self.path(name) for name in where))
        _, result = self.train(sources[1], "network", deterministic=False)
        check_near(self, result, "kept", size, (1, 0))
        self.row("word2vec, data on MooseFS, two hosts", "copied once to each; the same digest as from the disk; workers that changed hosts "
                 "took the parts that are there")


if __name__ == "__main__":
    sys.exit(main(NetworkJobs))
