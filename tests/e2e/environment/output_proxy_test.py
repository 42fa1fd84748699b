"""Tasks find the proxies of the command that started their job, in either spelling."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

JOB = 'name: proxies\ncommand: [sh, -c, "env | grep -i _proxy="]\n'


class OutputProxyTest(harness.JobsTest):
    def test_both_spellings(self):
        proxies = {}
        for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
            proxies[name] = f"http://{name}.example:1"
            proxies[name.upper()] = f"http://{name}.example:2"
        code, out, err = self.go(JOB, env=proxies)
        self.assertEqual(code, 0, err)
        for name, value in proxies.items():
            self.assertIn(f"{name}={value}\n", out)


if __name__ == "__main__":
    unittest.main()
