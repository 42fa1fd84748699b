"""Every boundary between two records of jobs of each shape at which their server is killed, and 50 jobs at once whose server is
killed at its first commit, its second, … (boundaries.py). SHOAL_TEST_ENGINE chooses the engine."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from boundaries import SHAPES, BoundaryTest  # noqa: E402  pylint: disable=wrong-import-position

JOBS = int(os.environ.get("SHOAL_TEST_JOBS", "50"))


class AllBoundariesTest(BoundaryTest):
    def test_each_shape(self):
        kills = {}
        for name in SHAPES:
            for point in ("store.commit", "store.committed"):
                kills[f"{name} {point}"] = self.all_boundaries(name, point, range(1, 100))
        print("kills:", kills, "in all", sum(kills.values()))

    def test_many_jobs_at_once(self):
        print("kills:", self.crowd(JOBS))


if __name__ == "__main__":
    unittest.main()
