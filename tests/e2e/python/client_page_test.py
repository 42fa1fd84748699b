"""The examples of docs/python.md, as they stand there, against a real server."""
import importlib.util
import os
import subprocess
import sys
import unittest

SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path[:0] = [os.path.join(SOURCE, "tests", "e2e", "server"), os.path.join(SOURCE, "tests", "e2e", "documents")]
from server_harness import PATIENCE, Server, job_text  # noqa: E402  pylint: disable=wrong-import-position
import documented  # noqa: E402  pylint: disable=wrong-import-position

PAGE = os.path.join(SOURCE, "docs", "python.md")


class PageTest(unittest.TestCase):
    def test_examples(self):
        with open(PAGE, encoding="utf-8") as page:
            blocks = ["\n".join(lines) + "\n" for language, _, lines in documented.blocks(page.read()) if language == "python"]
        self.assertEqual(len(blocks), 6)
        skipped = []
        with Server() as server:
            server.home.write("job.yaml", job_text("quick", "echo hello"))
            env = {**server.home.environ({"SHOAL_SERVER": server.url, "SHOAL_TOKEN": server.admin}),
                   "PYTHONPATH": os.path.join(SOURCE, "python")}
            for number, block in enumerate(blocks, 1):
                if "@shoal.task" in block and importlib.util.find_spec("cloudpickle") is None:
                    skipped.append("functions: cloudpickle is not installed")
                    continue
                with self.subTest(f"block {number}"):
                    done = subprocess.run([sys.executable, "-c" if "@shoal" not in block else server.home.write("example.py", block),
                                           *([block] if "@shoal" not in block else [])],
                                          cwd=server.home.root, env=env, capture_output=True, text=True, check=False,
                                          timeout=120 * PATIENCE)
                    self.assertEqual(done.returncode, 0, done.stderr)
        if skipped:
            self.skipTest("; ".join(skipped))


if __name__ == "__main__":
    unittest.main()
