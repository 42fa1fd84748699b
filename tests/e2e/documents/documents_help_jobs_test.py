"""The examples of every --help about jobs are run as printed, on running jobs."""
import unittest

import sandbox


class DocumentsHelpJobsTest(sandbox.HelpTest):
    def test_examples(self):
        box = self.sandbox()
        chosen = [name for name in box.subcommands() if name not in sandbox.MODEL_COMMANDS]
        self.assertGreater(len(chosen), 15)
        self.check_help(box, chosen)


if __name__ == "__main__":
    unittest.main()
