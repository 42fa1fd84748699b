"""Documented commands that need a server, as printed: on a machine of the test's own, whose /var/lib/shoal, /etc/shoal, … are private and
whose hosts ml.example, ml1.example, … are itself (private_machine.py). What a document leaves open is filled in: IDs of jobs, a
fingerprint, what a person types, the server to which a command of a help text speaks.

SHOAL_BIN names the binary, SHOAL_SOURCE the checkout. Skipped where such a machine cannot be made, and OpenID Connect and
PostgreSQL where these are missing."""
import re
import time
import unittest

import places
import private_machine
import sandbox
from sandbox import harness
from server_site import PLAIN, Site

# The server to which a command speaks: the first that fits, and for the last the one that its page has started, if it has.
PINNED = PLAIN + " --listen 0.0.0.0:7117 --tls-self-signed --name ml.example"
TRUSTED = "shoal server --listen 0.0.0.0:7117 --tls-cert server.crt --tls-key server.key"
SERVERS = (
    (r".* https://ml\.example:7117 --fingerprint", PINNED),
    (r".* https://ml\.example:7117 --oidc", TRUSTED + " --oidc /etc/shoal/oidc.json"),
    (r".* https://ml\.example:7117", TRUSTED),
    (r"shoal (queue|policy|schedule .*--team)", PLAIN + " --queues policy.yaml"),
    (r"(?!.*https://ml1)", PLAIN),
)
# What the machine lacks, by the beginning of a command.
QUEUES = """\
flavors: {here: {engine: local}}
default_queue: general
queues:
  research: {quota: {here: {memory: 4Gi}}}
  general: {quota: {here: {memory: 4Gi}}}
"""
FILES = {
    "job.yaml": "name: job\ncommand: [echo, hello]\nroles: {worker: 2}\n", "policy.yaml": QUEUES,
    "policy.json": '{"engines": ["local", "k8s-*"], "log_days": 30}\n',
    "slack.url": "https://hooks.example.org/services/T0/B0/key\n",
    "prepare.py": "print('prepared')\n",
}
PAGES = ("docs/triggers.md", "docs/logs.md")  # have files that help texts name


class DocumentsServerTest(sandbox.DocumentTest):
    def check_page(self, page, commands):
        """Runs these commands of a page."""
        files = {name: text for one in (*PAGES, page) if one.endswith(".md") for name, text in sandbox.files_of(one).items()}
        box = self.sandbox(files={**files, **FILES})
        box.certify("ml.example")
        site = Site(self, box)
        self.addCleanup(site.close)
        started, before = set(), page
        for command in commands:
            if command.page != before:  # each help text begins anew
                started, before = set(), command.page
                fault = site.stop() if site.line.endswith("/srv/shoal") else ""
                self.assertEqual(fault, "")
                private_machine.clear(places=["/srv/shoal"])
            with self.subTest(where=f"{command.page}:{command.line}", command=command.text):
                begin = time.monotonic()
                fault = self.run_at(site, command.text, started)
                print(f"{time.monotonic() - begin:6.2f} s  {'failed  ' if fault else ''}{command}", flush=True)
                if fault:
                    self.fail(fault)

    def run_at(self, site, text, started):
        """What is wrong with a command beside a page's server. started: whether the page itself has started one."""
        if re.match("shoal server (?!backup|restore)", text):
            started.add(text)
            return site.serve(site.fill_in(text))
        server = next((server for beginning, server in SERVERS if re.match(beginning, text)), "")
        if not (site.process and site.line == server or (site.process and started and server in ("", PLAIN))):
            fault = site.serve(server)
            if fault:
                return fault
        if text.startswith("shoal login"):
            return self.login(site, site.fill_in(text))
        if text.startswith("shoal logout") or site.box.run("shoal queue")[0] != 0:
            code, said = site.sign_in()
            if code != 0:
                return said
        code, said = site.box.run(site.fill_in(text))
        site.remember(said)
        return "" if code == 0 else f"exit code {code}\n{said}"

    def login(self, site, line):
        """A person types the token, or agrees in a browser."""
        if line.endswith("--oidc"):
            process = site.box.start(line)
            harness.poll_until(lambda: site.provider.devices or process.poll() is not None, 60 * harness.PATIENCE)
            for device in list(site.provider.devices.values()):
                site.provider.agree(device["user_code"])
            code = process.wait(60 * harness.PATIENCE)
            said = harness.said(process)
        elif "--token-file" in line:
            code, said = site.box.run(line)
        else:
            code, said = site.box.type(line, site.token + "\n")
        return "" if code == 0 and "signed in" in said else f"exit code {code}\n{said}"

def add_pages():
    """A test for each page, and one for the help texts."""
    with_commands = sandbox.Sandbox()
    try:
        found = places.commands(harness.SOURCE, with_commands, "server")
    finally:
        with_commands.close()
    help_texts = {}
    for page, commands in found:
        if page.endswith(".md"):
            name = "test_" + re.sub(r"\W+", "_", page.removesuffix(".md")).lower()
            setattr(DocumentsServerTest, name, lambda self, page=page, commands=commands: self.check_page(page, commands))
        else:
            help_texts.update((command.text, command) for command in commands)
    setattr(DocumentsServerTest, "test_help_texts", lambda self: self.check_page("--help", list(help_texts.values())))


if __name__ == "__main__":
    private_machine.enter_or_skip()
    add_pages()
    unittest.main(verbosity=2)
