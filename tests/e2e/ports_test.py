"""Jobs start among processes that grab every port they can (port_adversary.py): none fails, nobody is left talking to a
stranger, theft is named. SHOAL_PORT_STARTS says how many jobs (20; ports_slow_test.py has 1,000)."""
import os
import sys
import unittest

import harness
import port_adversary


class PortsTest(unittest.TestCase):
    starts = 20

    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def test_jobs_start_among_robbers(self):
        count = int(os.environ.get("SHOAL_PORT_STARTS", self.starts))
        with port_adversary.Robbers() as robbers:
            result = port_adversary.starts(self.home, count, together=4)
        print(f"{count} starts: {result}", *(f"left out: {one}" for one in robbers.left_out), sep="\n", file=sys.stderr)
        self.assertEqual(robbers.died, [])
        for name, said in result.failed + result.unnamed + result.jobs_met:
            print(f"---- {name}\n{said}", file=sys.stderr)
        self.assertEqual([name for name, _ in result.failed], [])
        self.assertEqual([name for name, _ in result.unnamed], [], "theft is named in the events")
        self.assertEqual([name for name, _ in result.jobs_met], [], "no job talks to another one's member")
        self.assertLess(result.longest, 2.0 * harness.PATIENCE)
        if count >= 100:
            self.assertGreater(result.thefts, 0, "the robbers were too slow to say anything")
        self.assertEqual(self.home.leftovers(), [])


def main():
    why_not = port_adversary.enter_namespace()
    if why_not:
        print(f"skipped: {why_not}", file=sys.stderr)
        sys.exit(77)
    unittest.main(module="ports_test")


if __name__ == "__main__":
    main()
