"""The programs that Shoal is measured against, from PyPI in an environment of their own below the cache directory.

gensim is required, fastText is used when it can be installed. Nothing of them is in this repository.
"""
import json
import os
import subprocess
import sys

import measure

ENVIRONMENT = os.path.join(measure.CACHE, "peers")
PYTHON = os.path.join(ENVIRONMENT, "bin", "python3")
REQUIRED, OPTIONAL = "gensim==4.4.0", "fasttext-wheel==0.9.2"
STORE = "moto[s3,server]==5.2.5"  # an S3 server, with boto3: for tests/e2e/stores/s3_test.py


def has(module):
    """True if the environment exists and has the module."""
    if not os.path.exists(PYTHON):
        return False
    return subprocess.run([PYTHON, "-c", f"import {module}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def _install(requirement):
    done = subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode == 0, done.stdout


def ensure(optional=True):
    """Installs missing peers; returns the set of peers that can run. Exits if gensim cannot be installed."""
    if not os.path.exists(PYTHON):
        print(f"peers: making an environment in {ENVIRONMENT}", file=sys.stderr)
        os.makedirs(measure.CACHE, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    if not has("gensim"):
        print(f"peers: installing {REQUIRED}", file=sys.stderr)
        ok, output = _install(REQUIRED)
        if not ok:
            sys.exit(f"peers: cannot install {REQUIRED}; is PyPI reachable? pip said:\n{output[-1500:]}")
    found = {"gensim"}
    if optional and not has("fasttext"):
        print(f"peers: installing {OPTIONAL}", file=sys.stderr)
        _install(OPTIONAL)
    if optional and has("fasttext"):
        found.add("fasttext")
    return found


def run(peer, corpus, threads, options, save=None):
    """One training by `peer`: {"words_per_second", "seconds", "rss_mib"}."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_train.py")
    command = [PYTHON, "-B", script, peer, corpus, "--threads", str(threads), "--dim", str(options.dim), "--window",
               str(options.window), "--negative", str(options.negative), "--sample", str(options.sample), "--min-count",
               str(options.min_count), "--epochs", str(options.epochs), "--alpha", str(options.alpha)]
    if options.hs:
        command.append("--hs")
    if save:
        command += ["--save", save]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(f"{peer} failed:\n{done.stderr[-1500:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    ensure(optional=False)
    if not has("moto"):
        print(f"peers: installing {STORE}", file=sys.stderr)
        _install(STORE)  # its test is skipped without
