"""An S3 server of a test's own: moto's, which checks signatures, with a bucket and a user who may use it."""
import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "..", "..", "bench")]
import harness  # noqa: E402
import peers  # noqa: E402

# The first actions need no signature: a user with a key, and a bucket.
_PREPARE = """\
import boto3, json, sys
kinds = dict(endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
iam = boto3.client("iam", **kinds)
iam.create_user(UserName="ann")
key = iam.create_access_key(UserName="ann")["AccessKey"]
iam.put_user_policy(UserName="ann", PolicyName="all", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
boto3.client("s3", **kinds).create_bucket(Bucket="bucket")
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))
"""
ACTIONS = 4


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def installed():
    """Whether there is one; script/test with a network installs it."""
    return peers.has("moto")


class S3Store:
    """Started by the constructor. env: with which programs reach it."""

    def __init__(self):
        port = free_port()
        self._moto = subprocess.Popen(
            [peers.PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(ACTIONS)})
        if not harness.poll_until(lambda: listens(port), 60 * harness.PATIENCE):
            self.close()
            raise AssertionError("moto does not listen")
        url = f"http://127.0.0.1:{port}"
        key, secret = json.loads(self.peer(_PREPARE, url))
        self.env = {"AWS_ENDPOINT_URL_S3": url, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
                    "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}

    def close(self):
        self._moto.kill()
        self._moto.wait()

    def peer(self, script, *arguments, env=None):
        """What a script of boto3 prints."""
        done = subprocess.run([peers.PYTHON, "-c", script, *arguments], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, **(env or {})}, timeout=120)
        return done.stdout
