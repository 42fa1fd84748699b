"""Shoal's image on the tests' Docker daemon: builds docker/Dockerfile by the daemon itself, without BuildKit or registry,
on a Debian that mmdebstrap makes (kept in ~/.cache/shoal). Used by docker_test.py; by itself it builds:
    script/test-cluster docker -- python3 -B tests/cluster/shoal_image.py NAME:TAG"""
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BASE = ("debian", "12-slim")  # as the Dockerfile calls it
MIRROR = "http://deb.debian.org/debian"


def ask(method, path, body=None, seconds=60, upload=None):
    """What the daemon answers, as text. `upload`: a tar file to send."""
    command = ["curl", "--silent", "--fail-with-body", "--max-time", str(seconds), "--unix-socket", os.environ["DOCKER_HOST"][len("unix://"):], "-X", method]
    if upload:
        command += ["-H", "Content-Type: application/x-tar", "-T", upload]
    if body is not None:
        command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    done = subprocess.run([*command, "http://docker/v1.40" + path], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{method} {path}: {done.stdout}{done.stderr}")
    return done.stdout


def place_of_base():
    return os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "shoal", "debian-12.tar")


def can_be_made():
    return os.path.exists(place_of_base()) or shutil.which("mmdebstrap") is not None


def base():
    """A tar of Debian 12 with what is essential, made once."""
    place = place_of_base()
    if not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates", "bookworm", place + ".new.tar",
                        *(f"deb {place_of} {suite} main" for place_of, suite in (
                            (MIRROR, "bookworm"), (MIRROR, "bookworm-updates"), (MIRROR + "-security", "bookworm-security")))], check=True)
        os.rename(place + ".new.tar", place)
    return place


def context_of_tree(place):
    """What git knows of this tree."""
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-C", ROOT, "--null", "-T", "-", "-cf", place], input=files, check=True)


def context_of_binaries(place, binaries):
    """The Dockerfile with these in the place of what its first stage compiles; all behind that as it is."""
    with open(os.path.join(ROOT, "docker", "Dockerfile")) as file:
        last = file.read().rpartition("\nFROM ")[2]
    text = f"FROM {':'.join(BASE)} AS build\nCOPY shoal shoal-task /shoal/build/release/\nFROM {last}".encode()
    with tarfile.open(place, "w") as tar:
        entry = tarfile.TarInfo("docker/Dockerfile")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
        for path in binaries:
            tar.add(path, os.path.basename(path))


def build(name, binaries=()):
    """Makes the image: of the whole tree, or of programs that were compiled here. RuntimeError with the builder's last words if it fails."""
    ask("POST", f"/images/create?fromSrc=-&repo={BASE[0]}&tag={BASE[1]}", upload=base(), seconds=300)
    with tempfile.TemporaryDirectory() as scratch:
        context = os.path.join(scratch, "context.tar")
        if binaries:
            context_of_binaries(context, binaries)
        else:
            context_of_tree(context)
        said = ask("POST", f"/build?t={name}&dockerfile=docker/Dockerfile&networkmode=host&rm=true&forcerm=true", upload=context, seconds=7200)
    lines = [json.loads(line) for line in said.splitlines() if line.strip()]
    if any("error" in line for line in lines):
        raise RuntimeError("".join(line.get("stream", line.get("error", "")) for line in lines[-60:]))


def run(name, words, host):
    """The exit code of the image's own entry point with these words, and what it said."""
    made = json.loads(ask("POST", "/containers/create", {"Image": name, "Cmd": words, "HostConfig": host, "Tty": True}))["Id"]
    try:
        ask("POST", f"/containers/{made}/start")
        code = json.loads(ask("POST", f"/containers/{made}/wait", seconds=600))["StatusCode"]
        return code, ask("GET", f"/containers/{made}/logs?stdout=true&stderr=true")
    finally:
        ask("DELETE", f"/containers/{made}?force=true&v=true")


if __name__ == "__main__":
    build(sys.argv[1])
