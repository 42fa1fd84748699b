"""The documented command that makes the text of examples/text, as printed: it makes that very text. Skipped where its package is missing."""
import os
import shutil
import subprocess
import sys
import unittest

import places
import sandbox
from sandbox import harness


class DocumentsTextTest(sandbox.DocumentTest):
    def test_command_runs_as_printed(self):
        box = self.sandbox()
        os.unlink(os.path.join(box.root, "examples"))
        os.makedirs(os.path.join(box.root, "examples/text"))
        shutil.copy(os.path.join(harness.SOURCE, "examples/text/prepare.py"), os.path.join(box.root, "examples/text"))
        (_, commands), = places.commands(harness.SOURCE, box, "text")
        for command in commands:
            process = box.start(command.text)
            self.assertEqual(process.wait(600 * harness.PATIENCE), 0, harness.said(process))
        texts = [subprocess.run(["zstd", "-dcq", os.path.join(root, "examples/text/kjv.txt.zst")], stdout=subprocess.PIPE, check=True).stdout
                 for root in (box.root, harness.SOURCE)]
        self.assertTrue(texts[0] == texts[1])
        self.assertGreater(len(texts[0]), 1_000_000)


if __name__ == "__main__":
    if not shutil.which("bible"):
        print("skipped: there is no bible; the package bible-kjv has it")
        sys.exit(77)
    unittest.main(verbosity=2)
