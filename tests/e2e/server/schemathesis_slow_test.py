"""schemathesis over the OpenAPI document of a running server: nothing answers with 5xx, with a status, a type, headers or a body that
the document does not have, takes what it should refuse, or answers without a token.

schemathesis comes from PyPI into an environment of its own; without it and without PyPI the test is skipped (77).
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "..", "bench")]
import measure  # noqa: E402  pylint: disable=wrong-import-position
from server_harness import Server, job_text  # noqa: E402  pylint: disable=wrong-import-position

ENVIRONMENT = os.path.join(measure.CACHE, "schemathesis")
PROGRAM = os.path.join(ENVIRONMENT, "bin", "schemathesis")
REQUIREMENT = "schemathesis==4.32.5"
# Streams, which do not end, and WebSockets.
STREAMS = "/watch|/stream|/follow"
# The document cannot say what else makes a request wrong: a cursor of another store, a job file, a user that does not exist.
NOT_CHECKED = "positive_data_acceptance"
SECONDS = 3600


def install():
    if os.path.exists(PROGRAM):
        return True
    os.makedirs(measure.CACHE, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    return subprocess.run([os.path.join(ENVIRONMENT, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", REQUIREMENT],
                          check=False).returncode == 0


def main():
    if not install():
        print(f"skipped: {REQUIREMENT} is not installed, and PyPI cannot be reached")
        return 77
    with Server() as server, tempfile.TemporaryDirectory() as place:
        job = server.submit(job_text(script="echo hello; sleep 10000"), team="default")
        server.wait_for(job, ("running",))
        done = subprocess.run([PROGRAM, "run", server.url + "/api/v1/openapi.json", "--header", f"Authorization: Bearer {server.admin}",
                               "--exclude-path-regex", STREAMS, "--exclude-checks", NOT_CHECKED, "--max-examples", "20", "--seed", "1",
                               "--request-timeout", "60", "--no-color"], cwd=place, timeout=SECONDS, check=False)
        assert server.process.poll() is None, "the server has ended"
        assert server.state_of(job), "the job is gone"
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
