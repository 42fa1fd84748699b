"""A state home on a disk that is full for a while. SHOAL_BIN names the binary."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

# Ends when MARK is there.
WAITS = """\
name: waits
command: [sh, -c, "echo up; while [ ! -e @MARK@ ]; do sleep 0.05; done; @LAST@"]
on_controller_loss: keep
roles: {worker: {replicas: 2}}
"""


def mount(path, size):
    os.makedirs(path, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "none", path], check=False,
                          stderr=subprocess.DEVNULL)
    return done.returncode == 0


class DiskTest(harness.JobsTest):
    def setUp(self):
        super().setUp()
        self.assertTrue(mount(self.home.home, "16m"))
        self.addCleanup(subprocess.run, ["umount", "-l", self.home.home], check=False)
        self.mark = self.home.path("mark")
        self.filler = os.path.join(self.home.home, "filler")

    def fill(self):
        with open(self.filler, "wb", buffering=0) as f:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        f.write(b"x" * size)
                except OSError:
                    pass

    def begin(self, last="echo down"):
        run = self.home.start("run", self.home.write("job.yaml",
                                                     WAITS.replace("@MARK@", self.mark).replace("@LAST@", last)))
        self.assertTrue(harness.poll_until(lambda: harness.said(run).count(" | up") == 2, 20 * harness.PATIENCE),
                        harness.said(run))
        return run

    def states(self):
        return [job["state"] for job in map(json.loads, self.home.run("jobs", "--json")[1].splitlines())]

    def test_a_moment_without_room_costs_nothing(self):
        run = self.begin()
        self.fill()
        with open(self.mark, "w", encoding="ascii"):
            pass
        harness.poll_until(lambda: "the job waits" in harness.said(run), 0.6)
        os.remove(self.filler)
        self.assertEqual(run.wait(30 * harness.PATIENCE), 0, harness.said(run))
        self.assertEqual(self.states(), ["succeeded"])
        code, out, _ = self.home.run("logs", "waits", "worker-1")
        self.assertEqual((code, out), (0, "up\ndown\n"))
        self.assertEqual(self.home.leftovers(), [])

    def test_the_last_lines_of_a_program_are_stored_later(self):
        run = self.begin(last="seq 4000; echo last")
        self.fill()
        with open(self.mark, "w", encoding="ascii"):
            pass
        self.assertTrue(harness.poll_until(lambda: not any(p.kind == "worker" for p in self.home.processes()),
                                           20 * harness.PATIENCE))
        harness.poll_until(lambda: "are lost" in harness.said(run), 1)  # the lines have 10 s
        os.remove(self.filler)
        self.assertEqual(run.wait(30 * harness.PATIENCE), 0, harness.said(run)[-2000:])
        self.assertNotIn("are lost", harness.said(run))
        lines = "\n".join(["up", *map(str, range(1, 4001)), "last", ""])
        for task in ("worker-0", "worker-1"):
            code, out, _ = self.home.run("logs", "waits", task)
            self.assertEqual((code, out), (0, lines))
        self.assertEqual(self.home.leftovers(), [])

    def test_an_end_that_only_the_journal_holds_is_recorded(self):
        run = self.begin(last="true")
        run.kill()
        run.wait()
        self.fill()
        with open(self.mark, "w", encoding="ascii"):
            pass
        self.assertTrue(harness.poll_until(lambda: not any(p.kind in ("launcher", "worker")
                                                           for p in self.home.processes()), 30 * harness.PATIENCE))
        coordinator = [p.pid for p in self.home.processes() if p.kind == "coordinator"]
        os.remove(self.filler)
        for pid in coordinator:
            os.kill(pid, 9)
        self.assertEqual(self.states(), ["succeeded"])
        self.assertEqual(self.home.leftovers(), [])

    def test_lines_that_had_no_room_leave_a_line_in_the_log(self):
        go = self.home.path("go")
        run = self.begin(last=f"seq 1000000; while [ ! -e {go} ]; do sleep 0.05; done; echo last")
        self.fill()
        with open(self.mark, "w", encoding="ascii"):
            pass
        lost = re.compile(r"log lines of worker (\d) are lost: .*No space left on device")
        self.assertTrue(harness.poll_until(lambda: lost.search(harness.said(run)), 60 * harness.PATIENCE))
        worker = lost.search(harness.said(run))[1]
        os.remove(self.filler)
        with open(go, "w", encoding="ascii"):
            pass
        self.assertEqual(run.wait(60 * harness.PATIENCE), 0, harness.said(run)[-2000:])
        self.assertEqual(self.home.leftovers(), [])
        code, out, _ = self.home.run("logs", "waits", f"worker-{worker}")
        self.assertEqual(code, 0)
        self.assertTrue(re.search(r"\n\[shoal: \d+ bytes of this log could not be stored\] *\n", out))
        self.assertEqual(out.splitlines()[-1], "last")

    def test_stop_says_that_the_end_cannot_be_recorded(self):
        run = self.begin()
        self.fill()
        code, out, err = self.home.run("stop", "waits", seconds=60)
        self.assertEqual(code, 1, out + err)
        self.assertIn("its end cannot be recorded", err)
        self.assertIn("the disk is full", err)
        self.assertEqual(run.wait(30 * harness.PATIENCE), 130, harness.said(run))
        os.remove(self.filler)
        self.assertEqual(self.states(), ["cancelled"])
        self.assertEqual(self.home.leftovers(), [])


if __name__ == "__main__":
    probe = harness.tempfile.mkdtemp()
    able = os.geteuid() == 0 and mount(probe, "64k")
    if able:
        subprocess.run(["umount", probe], check=False)
    os.rmdir(probe)
    if not able:
        print("skipped: needs root and the right to mount")
        sys.exit(77)
    unittest.main()
