"""Documented commands with data elsewhere, as printed: an S3 server, and the host example.org, which serves by TLS, on a machine of the test's
own (private_machine.py). Skipped where such a machine cannot be made or the S3 server is missing; script/test with a network installs it."""
import gzip
import http.server
import os
import ssl
import sys
import threading
import unittest

import places
import private_machine
import sandbox
from sandbox import harness

sys.path.insert(0, os.path.join(sandbox.HERE, "..", "stores"))
import s3_store  # noqa: E402  pylint: disable=wrong-import-position

# What is in the bucket, by the file from which it is copied.
BUCKET = {"train.libsvm": ("clicks/part-0.libsvm", "clicks/part-1.libsvm"), "text.txt": ("news/part-0.txt", "news/part-1.txt"),
          "people.csv": ("people.csv",), "events.jsonl": ("events/a.jsonl",)}


class Page(http.server.SimpleHTTPRequestHandler):
    """Files of the directory `served`."""

    served = ""

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=self.served)

    def log_message(self, *_):
        pass


class DocumentsStoresTest(sandbox.DocumentTest):
    def web(self, box):
        """https://example.org, with a certificate that commands trust."""
        box.certify("example.org")
        Page.served = box.home.path("web")
        os.mkdir(Page.served)
        with open(os.path.join(Page.served, "news.txt.gz"), "wb") as file:
            file.write(gzip.compress(sandbox.TEXT.encode()))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), Page)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(box.root, "server.crt"), os.path.join(box.root, "server.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def test_commands_run_as_printed(self):
        box = self.sandbox()
        store = s3_store.S3Store()
        self.addCleanup(store.close)
        box.exports.update(store.env)
        self.web(box)
        for file, names in BUCKET.items():
            for name in names:
                code, said = box.run(f"shoal data copy {file} s3://bucket/{name}")
                self.assertEqual(code, 0, said)
        found = {command.text: command for _, commands in places.commands(harness.SOURCE, box, "stores") for command in commands}
        self.assertGreater(len(found), 4)
        for command in found.values():
            with self.subTest(where=f"{command.page}:{command.line}", command=command.text):
                code, said = box.run(command.text)
                self.assertEqual(code, 0, said)


if __name__ == "__main__":
    if not s3_store.installed():
        print("skipped: moto is not installed")
        sys.exit(77)
    private_machine.enter_or_skip()
    unittest.main(verbosity=2)
