"""The examples of every --help about models and this machine are run as printed; documents_help_jobs_test.py has those about jobs."""
import unittest

import sandbox


class DocumentsHelpTest(sandbox.HelpTest):
    def test_examples(self):
        policy = sandbox.files_of("docs/queue.md")["teams.yaml"]
        box = self.sandbox(files={"clicks/a.svm": sandbox.SPARSE, "new.yaml": policy, "old.yaml": policy})
        self.assertEqual(box.run("shoal train word2vec --data text8 --output other && cp other/vectors.bin vectors.bin && "
                                 "cp vectors.bin other.bin")[0], 0)
        self.check_help(box, sandbox.MODEL_COMMANDS)


if __name__ == "__main__":
    unittest.main()
