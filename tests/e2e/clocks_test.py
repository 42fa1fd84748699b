"""Jobs on hosts whose clocks are minutes apart: controller, coordinator and launchers each with a clock of their own. The
processes' clocks are set by a library that the loader takes from an /etc of their own (user and mount namespaces, an overlay),
because the engine gives its processes a clean environment. SHOAL_BIN names the binary."""
import os
import re
import shlex
import signal
import subprocess
import sys
import unittest

import harness

CLOCKS = {"coordinator-": 300, "worker-0.": -300, "worker-1.": 300, "server-0.": -86400}
SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock_shim.c")


def here():
    """Whether namespaces, overlays and a compiler are to be had."""
    command = "unshare -rm mount -t overlay overlay -o lowerdir=/usr/share:/etc /etc && cc --version"
    return subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class ClocksTest(harness.JobsTest):
    def setUp(self):
        super().setUp()
        home = self.home
        os.mkdir(home.path("etc"))
        clocks = home.write("clocks", "".join(f"apart/{word} {seconds}\n" for word, seconds in CLOCKS.items()))
        subprocess.run(["cc", "-shared", "-fPIC", f'-DCLOCKS="{clocks}"', "-o", home.path("clock.so"), SHIM], check=True)
        home.write("etc/ld.so.preload", home.path("clock.so") + "\n")
        # The namespaces' shell becomes the program.
        inside = f"mount -t overlay overlay -o lowerdir={home.path('etc')}:/etc /etc && exec {shlex.quote(home.binary)} \"$@\""
        home.binary = home.write("shoal", f"#!/bin/sh\nexec unshare -rm sh -c {shlex.quote(inside)} shoal \"$@\"\n")
        os.chmod(home.binary, 0o755)

    def test_each_has_its_clock_and_a_killed_launcher_is_made_again(self):
        file = self.home.write("job.yaml", """\
name: clocks
roles:
  worker:
    replicas: 2
    restart: {when: transient, backoff: 10ms}
    command: [sh, -c, 'echo it is $(date +%s); while [ ! -e "$GO" ]; do sleep 0.02; done; echo end']
    env: {GO: "@GO@"}
""".replace("@GO@", self.home.path("go")))
        process = self.home.start("run", file, "--engine", "local-apart")
        self.addCleanup(process.kill)
        said = lambda: re.findall(r"worker-(\d) \| it is (\d+)", harness.said(process))
        self.assertTrue(harness.poll_until(lambda: len(said()) == 2, 30 * harness.PATIENCE), harness.said(process))
        times = {index: int(seconds) for index, seconds in said()}
        self.assertAlmostEqual(times["1"] - times["0"], 600, delta=30)
        launchers = [p for p in self.home.processes() if p.kind == "launcher" and "worker-1.0" in " ".join(p.argv)]
        os.kill(min(launchers, key=lambda p: p.pid).pid, signal.SIGKILL)
        self.assertTrue(harness.poll_until(lambda: len(said()) == 3, 60 * harness.PATIENCE), harness.said(process))
        self.home.write("go", "")
        self.assertEqual(process.wait(timeout=60 * harness.PATIENCE), 0, harness.said(process))
        # No clock of another stands in what it took.
        self.assertRegex(harness.said(process), r"succeeded after (\d+ ms|[\d.]+ s)\n")
        self.assertEqual(self.home.leftovers(), [])

    def test_word2vec_gives_the_same_bytes(self):
        text = self.home.write("text.txt", "the sea and the ship and the wave\n" * 3000)
        models = []
        for engine in ("local", "local-apart"):
            code, out, err = self.go(harness.TRAIN % (text, self.home.path(engine)), "--engine", engine)
            self.assertEqual(code, 0, out + err)
            with open(self.home.path(engine, "vectors.bin"), "rb") as f:
                models.append(f.read())
        self.assertEqual(*models)


if __name__ == "__main__":
    if not here():
        print("skipped: no namespaces with overlays here (unshare -rm), or no compiler")
        sys.exit(77)
    unittest.main()
