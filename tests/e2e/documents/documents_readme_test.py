"""README's commands are run as printed; the job that it describes runs while its other commands ask about it."""
import os
import unittest

import documented
import sandbox
from sandbox import harness

SIZE = 100_000_000  # of the text, on one core: more than the other commands take


class DocumentsReadmeTest(sandbox.DocumentTest):
    def test_readme(self):
        box = self.sandbox(files=sandbox.files_of("README.md"), live={})
        for command in documented.of_page(harness.SOURCE, "README.md"):
            if command.text != "shoal run vectors.yaml":
                self.check(box, command)
                continue
            box.home.write("at/text.txt", sandbox.TEXT * (SIZE // len(sandbox.TEXT)))
            process = box.start("exec nice -n 19 taskset -c %d %s" % (min(os.sched_getaffinity(0)), command.text))
            box.await_words(process, "train ")


if __name__ == "__main__":
    unittest.main()
