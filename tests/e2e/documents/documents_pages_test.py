"""The commands of documents are run as printed, each page in a directory of its own with the files that it shows."""
import re
import unittest

import documented
import sandbox
from sandbox import harness

# Pages whose placeholder JOB is another job than elsewhere.
JOBS = {"docs/ps.md": "vectors"}
# Jobs that run before a page's first command.
RUNNING = {"docs/long-jobs.md": ["hung"]}


class DocumentsPagesTest(sandbox.DocumentTest):
    def check_page(self, page):
        box = self.sandbox(files=sandbox.files_of(page), also={"JOB": JOBS.get(page, "mnist")})
        for name in RUNNING.get(page, ()):
            box.live(name)
        for command in documented.of_page(harness.SOURCE, page):
            self.check(box, command)


def add_pages():
    """A test for each page."""
    for page in documented.pages(harness.SOURCE):
        if page != "README.md" and list(documented.of_page(harness.SOURCE, page)):
            name = "test_" + re.sub(r"\W+", "_", page.removesuffix(".md")).lower()
            setattr(DocumentsPagesTest, name, lambda self, page=page: self.check_page(page))


add_pages()
if __name__ == "__main__":
    unittest.main()
