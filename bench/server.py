"""The server beside Slurm: durable submissions of 16 clients, answers while jobs wait, and the start on an empty directory.

Each client has one connection and submits jobs one after another; a job is stored with a synced commit before the answer. They
wait: the first job has more than half of the memory, and each of them asks for as much. `sbatch` is given as many held jobs by
as many clients where a Slurm is running (script/bench server starts one); its own state is not synced for each job.
"""
import concurrent.futures
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import measure

CLIENTS = 16


class Server:
    """A `shoal server` on an empty directory, and how long it took to be ready."""

    def __init__(self, folder):
        self.state = os.path.join(folder, "state")
        self.begin = time.monotonic()
        self.process = subprocess.Popen([measure.SHOAL, "server", "--state", self.state, "--listen", "127.0.0.1:0"],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self.process.stdout.readline()
        self.ready = time.monotonic() - self.begin
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not found:
            sys.exit("shoal server did not start: " + line)
        self.port = int(found.group(1))
        with open(os.path.join(self.state, "administrator.token"), encoding="utf-8") as file:
            self.token = file.read().strip()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def call(self, connection, method, path, body=None):
        connection.request(method, "/api/v1" + path, json.dumps(body) if body is not None else None,
                           {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            sys.exit(f"{method} {path}: {reply.status} {text[:300]}")
        return json.loads(text) if text else None

    def close(self):
        self.process.terminate()
        self.process.wait()


def job(name):
    """The body of a submission; two such jobs do not fit."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 6 // 10
    return {"file": json.dumps({"name": name, "command": ["sleep", "1000"], "roles": {"task": {"replicas": 1, "resources": {"memory": f"{memory >> 20}Mi"}}}})}


def submissions(jobs):
    """(submissions a second, seconds until ready and until the first job runs, milliseconds of GET of one job and of the first page
    while all of them wait)."""
    with tempfile.TemporaryDirectory(prefix="shoal-server") as folder:
        server = Server(folder)
        first = server.connect()
        running = server.call(first, "POST", "/jobs", job("first"))["id"]
        while server.call(first, "GET", f"/jobs/{running}")["state"] != "running":
            time.sleep(0.002)
        until_running = time.monotonic() - server.begin

        def client(number):
            connection = server.connect()
            return [server.call(connection, "POST", "/jobs", job(f"j{number}-{turn}"))["id"] for turn in range(jobs // CLIENTS)]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            waiting = [name for names in pool.map(client, range(CLIENTS)) for name in names]
        seconds = time.monotonic() - begin
        for name in waiting[:3]:
            assert server.call(first, "GET", f"/jobs/{name}")["state"] == "pending"
        reads = []
        for path in (f"/jobs/{running}", "/jobs?state=pending&limit=50"):
            times = []
            for _ in range(200):
                begin = time.monotonic()
                server.call(first, "GET", path)
                times.append(time.monotonic() - begin)
            reads.append(sorted(times)[int(0.99 * len(times))] * 1000)
        for name in waiting + [running]:
            server.call(first, "POST", f"/jobs/{name}/stop", {"now": True})
        while server.call(first, "GET", "/jobs?state=running&limit=1")["items"]:
            time.sleep(0.05)
        server.close()
        return jobs / seconds, (server.ready, until_running), reads


def sbatch(jobs):
    """Submissions a second of held jobs by Slurm's own command; None without a Slurm."""
    if not shutil.which("sbatch") or subprocess.run(["sinfo"], capture_output=True, check=False).returncode != 0:
        return None

    def client(_):
        for _ in range(jobs // CLIENTS):
            subprocess.run(["sbatch", "--hold", "--output=/dev/null", "--wrap=true"], stdout=subprocess.DEVNULL, check=True)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, range(CLIENTS)))
    seconds = time.monotonic() - begin
    subprocess.run(["scancel", "--state=PENDING", "--user=" + (os.environ.get("USER") or "root")], check=False)
    return jobs / seconds


def main():
    parser = measure.arguments(__doc__, "server")
    parser.add_argument("--jobs", type=int, default=480, help="submissions in all")
    options = parser.parse_args()
    results = measure.interleave([("shoal", lambda: submissions(options.jobs)), ("sbatch", lambda: sbatch(options.jobs))], options.rounds)
    ours = [one[0] for one in results["shoal"]]
    theirs = measure.median(results["sbatch"])
    rate = measure.median(ours)
    lines = [["submissions a second, 16 clients", float(rate), theirs and float(theirs), theirs and rate / theirs],
             ["empty directory until ready, s", measure.median([one[1][0] for one in results["shoal"]]), None, None],
             ["empty directory until the first job runs, s", measure.median([one[1][1] for one in results["shoal"]]), None, None],
             [f"GET of one job while {options.jobs} wait, p99 in ms", measure.median([one[2][0] for one in results["shoal"]]), None, None],
             ["GET of 50 of the waiting jobs, p99 in ms", measure.median([one[2][1] for one in results["shoal"]]), None, None]]
    measure.finish("server", options, {"submissions": ours, "sbatch": results["sbatch"]},
                   [measure.table(["what", "shoal server", "sbatch", "ratio"], lines)])


if __name__ == "__main__":
    main()
