"""Documented commands that change the machine, as printed, on one of the test's own (private_machine.py): /usr/local/bin and
/etc/bash_completion.d are private, and no processes, control groups and shared memory of other tests are seen. Skipped where such a machine
cannot be made, and those of another shell where it is missing."""
import os
import re
import shlex
import shutil
import unittest

import places
import private_machine
import sandbox
from sandbox import harness

# What a command has made, or what comes of it.
MADE = {
    "install": "/usr/local/bin/shoal version && /usr/local/bin/shoal-task version",
    "shoal completion bash": "bash -n /etc/bash_completion.d/shoal && grep -q complete /etc/bash_completion.d/shoal",
}


class DocumentsMachineTest(sandbox.DocumentTest):
    def test_commands_run_as_printed(self):
        box = self.sandbox()
        os.symlink(box.home.binary + "-task", os.path.join(box.root, "build/release/shoal-task"))
        private_machine.hide("/sys/fs/cgroup", "/dev/shm")
        found = {command.text: command for _, commands in places.commands(harness.SOURCE, box, "machine") for command in commands}
        self.assertGreater(len(found), 3)
        for command in found.values():
            with self.subTest(where=f"{command.page}:{command.line}", command=command.text):
                self.check_command(box, command.text)

    def check_command(self, box, text):
        shell = "zsh" if "zsh" in text else "bash"
        if not shutil.which(shell):
            self.skipTest(f"there is no {shell}")
        line = "autoload -U compinit && compinit -u && " + text + " && (( $+_comps[shoal] ))" if shell == "zsh" else text
        code, said = box.run(f"unshare --pid --fork --mount-proc {shell} -c {shlex.quote(line)}")
        self.assertEqual(code, 0, said)
        for beginning, then in MADE.items():
            if re.match(beginning, text):
                code, said = box.run(then)
                self.assertEqual(code, 0, said)


if __name__ == "__main__":
    private_machine.enter_or_skip()
    unittest.main(verbosity=2)
