"""GPUs of one machine, with a library that stands for NVIDIA's: who gets which, and who sees none."""
import json
import os
import unittest

import harness

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(harness.DEFAULT_BINARY)), "libfake_nvml.so")


@unittest.skipUnless(os.path.exists(LIBRARY), "this build has no fake library")
class Gpus(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)
        self.devices("GPU-a A100 40000 300 0 0\nGPU-b A100 40000 300 0 0\n")
        self.env = {"SHOAL_NVML": LIBRARY, "FAKE_NVML": self.home.path("devices"), "SHOAL_GPU_DIR": self.home.path("gpus")}

    def devices(self, lines):
        self.home.write("devices", lines)

    def run_job(self, roles, name="gpus"):
        file = self.home.write("job.yaml", f"""\
name: {name}
command: [sh, -c, 'echo "$SHOAL_ROLE sees [$CUDA_VISIBLE_DEVICES]"; sleep 0.3']
env: {{FAKE_NVML: {self.home.path("devices")}}}
roles: {roles}
""")
        code, _, err = self.home.run("run", file, env=self.env)
        return code, self.home.run("logs", name)[1], err

    def doctor(self):
        code, out, _ = self.home.run("doctor", "--json", env=self.env)
        finding = next(f for f in json.loads(out)["findings"] if f["name"] == "gpus")
        return finding

    def test_each_sees_its_own_and_the_others_none(self):
        code, log, err = self.run_job("{worker: {replicas: 2, resources: {gpu: 1}}, other: 1}")
        self.assertEqual(code, 0, err + log)
        self.assertEqual(sorted(line.split(" sees ")[1] for line in log.splitlines() if " sees " in line),
                         ["[GPU-a]", "[GPU-b]", "[]"])
        self.assertIn("other sees []", log)
        code, log, err = self.run_job("{worker: {processes: 2, resources: {gpu: 2}}}", name="both")
        self.assertEqual(code, 0, err + log)
        self.assertEqual(log.count("worker sees [GPU-a,GPU-b]"), 2, log)

    def test_what_is_not_clean_is_not_given_and_named(self):
        self.devices("GPU-a A100 40000 300 0 0 1\nGPU-b A100 40000 300 0 0\n")
        code, log, err = self.run_job("{worker: {resources: {gpu: 1}}}")
        self.assertEqual(code, 0, err + log)
        self.assertIn("sees [GPU-b]", log)
        finding = self.doctor()
        self.assertEqual(finding["verdict"], "note")
        self.assertIn("process 1 is on it", finding["meaning"])
        self.assertEqual([d["use"] for d in finding["devices"]], ["quarantined", "free"])

    def test_more_than_there_are_is_refused_at_once(self):
        code, _, err = self.run_job("{worker: {resources: {gpu: 3}}}")
        self.assertEqual(code, 1, err)
        self.assertIn("GPU", err)

    def test_without_a_driver(self):
        del self.env["SHOAL_NVML"]
        self.env["SHOAL_NVML"] = self.home.path("nothing.so")
        self.assertEqual(self.doctor()["verdict"], "ok")
        self.assertIn("no NVIDIA driver", self.doctor()["meaning"])


if __name__ == "__main__":
    unittest.main()
