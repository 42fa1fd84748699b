"""Some boundaries between the records of a job at which its server is killed (boundaries.py)."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from boundaries import BoundaryTest  # noqa: E402  pylint: disable=wrong-import-position


class FewBoundariesTest(BoundaryTest):
    def test_a_job_that_restarts(self):
        self.assertEqual(self.all_boundaries("restarts", "store.committed", range(2, 7)), 5)

    def test_a_job_that_is_stopped(self):
        self.assertEqual(self.all_boundaries("stopped", "store.commit", range(4, 7)), 3)


if __name__ == "__main__":
    unittest.main()
