"""Jobs of framework horovod without Horovod: programs that say to the store what Horovod's ranks say, and check what
they find. SHOAL_BIN names the binary."""
import unittest

import harness

PROGRAM = """\
import http.client, os, time
env = os.environ
def ask(method, path, body=None):
    to = http.client.HTTPConnection(env["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(env["HOROVOD_GLOO_RENDEZVOUS_PORT"]), timeout=10)
    to.request(method, path, body)
    answer = to.getresponse()
    return answer.status, answer.read()
groups = {"global": ("RANK", "SIZE"), "local_" + env["HOROVOD_HOSTNAME"]: ("LOCAL_RANK", "LOCAL_SIZE"),
          "cross_" + env["HOROVOD_LOCAL_RANK"]: ("CROSS_RANK", "CROSS_SIZE")}
assert ask("POST", "/global/0")[0] == 400
for again in range(2):  # init, shutdown, init
    for scope, (rank, size) in groups.items():
        rank, size = int(env["HOROVOD_" + rank]), int(env["HOROVOD_" + size])
        me = (env["HOROVOD_RANK"] + " in " + scope).encode()
        while ask("GET", f"/{scope}/{rank}")[0] == 200: time.sleep(0.005)  # the group of before
        assert ask("PUT", f"/{scope}/{rank}", me)[0] == 200
        values = []
        for other in range(size):
            while (got := ask("GET", f"/{scope}/{other}"))[0] == 404: time.sleep(0.005)
            values.append(got[1])
        assert values[rank] == me and len(set(values)) == size, (scope, values)
        # All have seen all: each says so under a key that the store keeps until the group ends.
        assert ask("PUT", f"/{scope}/seen{rank}", b"x")[0] == 200
        for other in range(size):
            while ask("GET", f"/{scope}/seen{other}")[0] == 404: time.sleep(0.005)
        # Whoever leaves first must not end it for the others' last look: wait for a scope of another's.
        assert ask("PUT", f"/left_{scope}_{again}/{rank}", b"x")[0] == 200
        for other in range(size):
            while ask("GET", f"/left_{scope}_{again}/{other}")[0] == 404: time.sleep(0.005)
        assert ask("DELETE", f"/{scope}/{rank}")[0] == 200
print("rank", env["HOROVOD_RANK"], "met", *groups)
"""


class HorovodTest(unittest.TestCase):
    def test_groups_form_and_form_again(self):
        with harness.Home() as home:
            home.write("train.py", PROGRAM)
            job = home.write("job.yaml", "framework: horovod\ncommand: [python3, train.py]\n"
                                         "roles: {worker: {replicas: 2, processes: 2}}\nlimits: {restarts: 0}\n")
            code, out, err = home.run("run", job, seconds=60)
            self.assertEqual(code, 0, out + err)
            for rank in range(4):
                self.assertIn(f"rank {rank} met global local_worker-{rank // 2} cross_{rank % 2}", out)
            self.assertEqual(home.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
