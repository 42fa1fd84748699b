"""`shoal report JOB` and `shoal map MODEL`: pages and pictures without scripts, whose texts are escaped."""
import os
import random
import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import harness  # noqa: E402
import sql_test  # noqa: E402


class Pages(unittest.TestCase):
    def setUp(self):
        self.home = harness.Home()
        self.addCleanup(self.home.__exit__)

    def shoal(self, *arguments, code=0):
        got, out, err = self.home.run(*arguments, seconds=120)
        self.assertEqual(got, code, out + err)
        return out + err

    def read(self, name):
        with open(self.home.path(name), encoding="utf-8") as f:
            return f.read()

    def check_page(self, page):
        self.assertNotIn("<script", page)
        self.assertNotIn("onload", page)
        self.assertIn("default-src 'none'", page)
        self.assertFalse(re.search(r'(?:src|href)="(?!#)', page))

    def test_report_of_a_job(self):
        sql_test.write_people(self.home.path("people.csv"), 2000, 1)
        self.shoal("sql", "-e", "load csv.`people.csv` as t; train t as LogisticRegression.`income` where label='income' and epochs=3;")
        self.shoal("report", "logistic", "-o", "job.html")
        page = self.read("job.html")
        self.check_page(page)
        for text in ("Parameters", "<td>epochs</td><td>3</td>", "people.csv", "<svg", "Results", "worker-0", "Job file", "succeeded"):
            self.assertIn(text, page)

    def test_report_leaves_values_of_variables_out(self):
        with open(self.home.path("job.yaml"), "w", encoding="utf-8") as f:
            f.write("name: said\nenv: {TOKEN: hunter2}\nroles: {worker: {replicas: 1, command: [sh, -c, 'echo \"<script>x</script>\"; exit 3']}}\n")
        self.home.run("run", "job.yaml", seconds=60)
        self.shoal("report", "said", "-o", "job.html")
        page = self.read("job.html")
        self.check_page(page)
        self.assertNotIn("hunter2", page)
        self.assertIn("TOKEN", page)
        self.assertIn("&lt;script&gt;", page)
        self.assertIn("failed", page)

    def test_report_of_nothing(self):
        self.assertIn("no job", self.shoal("report", "nothing", "-o", "x.html", code=4))
        self.assertFalse(os.path.exists(self.home.path("x.html")))

    def test_map(self):
        rng = random.Random(1)
        with open(self.home.path("vectors.txt"), "w", encoding="utf-8") as f:
            f.write("60 8\n")
            for i in range(60):
                word = ("</title><script>alert(1)</script>", "a&b", "naïve")[i] if i < 3 else f"word{i}"
                f.write(word + " " + " ".join(f"{rng.gauss(3 if i % 2 else -3, 1):.4f}" for _ in range(8)) + "\n")
        self.shoal("map", "vectors.txt", "-o", "map.svg", "--words", "word9,naïve")
        svg = self.read("map.svg")
        self.assertNotIn("<script", svg)
        root = ElementTree.fromstring(svg)
        space = "{http://www.w3.org/2000/svg}"
        titles = [title.text for title in root.iter(space + "title")]
        self.assertEqual(len(titles), 60)
        self.assertTrue(any(title.startswith("</title><script>") for title in titles))
        self.assertEqual([title.split(":")[0] for title in titles[:2]], ["word9", "naïve"])
        self.assertGreater(len(list(root.iter(space + "text"))), 20)
        # Two groups of vectors are apart on the first axis.
        at = {title.text.split(":")[0]: float(group.find(space + "circle").get("cx"))
              for group in root.iter(space + "g") for title in group.iter(space + "title")}
        odd = [at[f"word{i}"] for i in range(5, 60, 2)]
        even = [at[f"word{i}"] for i in range(4, 60, 2)]
        self.assertTrue(max(odd) < min(even) or max(even) < min(odd))
        self.shoal("map", "vectors.txt", "-o", "again.svg", "--words", "word9,naïve")
        self.assertEqual(self.read("again.svg"), svg)
        self.shoal("map", "vectors.txt", "-o", "map.html", "--top", "10")
        page = self.read("map.html")
        self.check_page(page)
        self.assertEqual(page.count("<circle"), 10)

    def test_map_of_bad_models(self):
        self.assertIn("did you mean word1", self.map_of("3 2\nword1 1 0\nb 0 1\nc 1 1\n", "--words", "wrod1", code=4))
        self.assertIn("at least 3", self.map_of("2 2\na 1 0\nb 0 1\n", code=2))
        self.map_of("3 2\na nan inf\nb 0 0\nc 0 0\n")
        self.assertIn("no model", self.shoal("map", "nothing", "-o", "x.svg", code=4))

    def map_of(self, text, *arguments, code=0):
        with open(self.home.path("v.txt"), "w", encoding="utf-8") as f:
            f.write(text)
        return self.shoal("map", "v.txt", "-o", "v.svg", *arguments, code=code)


if __name__ == "__main__":
    unittest.main()
