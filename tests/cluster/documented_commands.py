"""The documented commands of an engine, as printed, on its real cluster: those that tests/e2e/documents/places.py gives to its suite. A
new one is run by the suite too, or fails it."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "e2e", "documents")]
import places  # noqa: E402
import sandbox  # noqa: E402
from harness import PATIENCE, SOURCE, poll_until, said  # noqa: E402

# The job of commands that ask about one: it runs until it is stopped.
LIVE = "name: live\n%sroles: {worker: {replicas: 1, command: [sh, -c, \"echo ready; exec sleep 1000\"]}}\n"


def run_all(suite, image="", files=(), exports=None, absent=None):
    """Runs them in a directory with these files; the lines that ran. AssertionError with what went wrong. image: of jobs that need one;
    exports: variables of the commands' environment; absent: {the beginning of a command: why it is not run here}."""
    box = sandbox.Sandbox(files={"live.yaml": LIVE % (f"image: {image}\n" if image else ""), **dict(files)})
    try:
        os.chmod(box.home.root, 0o755)
        os.unlink(box.home.path("bin/kubectl"))  # a stand-in elsewhere
        os.symlink(os.path.join(SOURCE, "deploy"), os.path.join(box.root, "deploy"))
        box.exports.update(exports or {})
        found = {command.text: command for _, commands in places.commands(SOURCE, box, suite) for command in commands}
        assert found, f"no document has a command for {suite}"
        ran, wrong = [], []
        for command in found.values():
            why = next((why for beginning, why in (absent or {}).items() if command.text.startswith(beginning)), "")
            if why:
                print(f"documented command not run here, {why}: {command}", flush=True)
                continue
            code, output = run(box, suite, command.text)
            ran.append(command.text)
            if code != 0:
                wrong.append(f"{command}: exit code {code}\n{output}")
        assert not wrong, "\n".join(wrong)
        return ran
    finally:
        box.close()


def run(box, suite, text):
    """Exit code and output of a command, beside a job if it names one."""
    if "JOB" not in text:
        return box.run(text)
    job = box.start(f"shoal run live.yaml --engine {suite}")
    poll_until(lambda: "| ready" in said(job) or job.poll() is not None, 60 * PATIENCE, 0.1)
    name = box.find("live", "running")
    assert name, said(job)
    try:
        return box.run(text.replace("NAMESPACE", "default").replace("JOB", name))
    finally:
        box.run("shoal stop live --now")
        job.wait(60 * PATIENCE)
