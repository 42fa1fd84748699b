"""Jobs on a real Docker daemon, with faults injected while they run. script/test-cluster docker brings the daemon up.

Everything is checked twice: what the command says, and what the daemon has afterwards (nothing).
"""
import base64
import glob
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import documented_commands
import shoal_image
from cluster_jobs import SHOAL, ClusterJobs, main, until


def api(method, path, body=None):
    """One call of the daemon, without a client library: curl speaks to unix sockets."""
    command = ["curl", "--silent", "--max-time", "30", "--unix-socket", os.environ["DOCKER_HOST"][len("unix://"):], "-X", method]
    if body is not None:
        command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    out = subprocess.run(command + ["http://docker/v1.40" + path], capture_output=True, text=True, check=True).stdout
    return json.loads(out) if out.strip() else None


def containers(running=False):
    label = '{"label":["shoal.dev/job"]}'
    found = api("GET", "/containers/json?all=true&filters=" + label.replace('"', "%22").replace("{", "%7B").replace("}", "%7D")
                .replace("[", "%5B").replace("]", "%5D"))
    return [one for one in found if not running or one["State"] == "running"]


def of_role(role, index=0):
    for one in containers(running=True):
        if one["Labels"]["shoal.dev/role"] == role and one["Labels"]["shoal.dev/index"] == str(index):
            return one
    return None


class DockerJobs(ClusterJobs):
    ENGINE = "docker"
    IMAGE = os.environ.get("SHOAL_TEST_IMAGE", "shoal-test/busybox:1")

    def left(self):
        return [one["Names"] for one in containers()]

    def clear(self):
        remove_all()

    # ---- Jobs ----

    def test_a_program_of_an_image(self):
        """busybox alone: no libc, no loader; the launcher has to be static."""
        out = self.shoal("run",
                         self.job("echo here is $SHOAL_INDEX of $SHOAL_ROLE; id -u; pwd"))
        self.assertIn("here is 0 of worker", out)
        self.assertIn("here is 1 of worker", out)
        self.assertIn(str(os.getuid()), out)
        self.assertIn("/work", out)  # the image's own directory
        self.row("two programs in a busybox image", "succeeded")

    def test_volumes_directory_and_limits(self):
        os.mkdir(self.path("in"))
        with open(self.path("in/text"), "w") as file:
            file.write("from outside\n")
        out = self.shoal("run", self.job(
            "pwd; cat text; touch nothing || echo read only; head -n 1 /sys/fs/cgroup/pids/pids.max || cat /sys/fs/cgroup/pids.max", 1,
            more="container: {volumes: [in:/in:ro], work_dir: /in, pids: 77}\n"))
        for words in ("from outside", "read only", "/in", "77"):
            self.assertIn(words, out)
        self.row("volume read only, work_dir, pids", "as asked")

    def test_word2vec_is_the_same_as_locally(self):
        self.check_word2vec()

    def test_a_tensorflow_job(self):
        self.check_tensorflow("container")

    def test_data_in_a_volume(self):
        os.mkdir(self.path("far"))
        shutil.copy(self.corpus(), self.path("far/text"))
        self.shoal("run", self.write(f"""name: test
framework: shoal
learn: {{algorithm: word2vec, dim: 8, epochs: 1, min_count: 1}}
data: {{train: {{source: /nowhere/here/text, format: text, shard_by: worker}}}}
roles: {{server: 1, worker: 2}}
container: {{volumes: ["{self.path("far")}:/nowhere/here:ro"]}}
outputs: {{model: {self.path("model")}}}
"""))
        self.assertTrue(os.path.getsize(self.path("model/vectors.bin")))
        self.row("data in a volume, under a path that the machine has not", "succeeded")

    def test_an_output_below_a_directory_that_this_machine_lacks(self):
        """It would be written to the container's own file system, and lost with it."""
        top = f"/shoal-test-{os.getpid()}"
        self.addCleanup(shutil.rmtree, top, ignore_errors=True)
        for output in (top + "/results/out", top + "-alone"):
            self.addCleanup(shutil.rmtree, top + "-alone", ignore_errors=True)
            out = self.shoal("run", self.job('mkdir -p "$SHOAL_OUTPUT" && echo kept > "$SHOAL_OUTPUT/file"', 1,
                                             more=f"outputs: {{model: {output}}}\n"))
            self.assertIn(f"the model is in {output}", out)
            with open(output + "/file") as file:
                self.assertEqual(file.read(), "kept\n")
        self.row("outputs below a directory that was not there", "made, kept")

    def test_as_another_user(self):
        out = self.shoal("run", self.job(
            'echo as $(id -u):$(id -g); touch "$SHOAL_OUTPUT/x" "$HOME/y" && echo wrote both', 1,
            more='container: {user: "12345:678"}\n'))
        self.assertIn("as 12345:678", out)
        self.assertIn("wrote both", out)
        self.row("container.user is another than the invoker", "reads its job, has a home, writes its output")

    def test_name_and_groups_of_the_user(self):
        out = self.shoal("run", self.job("echo user $USER in $(id -G); touch \"$HOME/x\" && echo home", 1))
        self.assertIn(f"user {pwd.getpwuid(os.getuid()).pw_name} in", out)
        for group in os.getgroups():
            self.assertRegex(out, rf"in .*\b{group}\b")
        self.assertIn("home", out)
        self.row("name, groups and home", "the invoker's")

    def test_exec_and_forward(self):
        job = self.start("run", self.job(
            self.GREETER, 1))
        self.assertTrue(until(lambda: of_role("worker")))
        said = lambda: self.ask("exec", "test", "worker-0", "--", "sh", "-c", "echo $SHOAL_ROLE in $(pwd); exit 7")
        self.assertTrue(until(lambda: said().returncode == 7, 20), said())
        self.assertIn("worker in /work", said().stdout)
        self.check_exec()
        self.check_forward()
        self.shoal("stop", "test")
        self.finish(job, 130)
        self.row("exec: environment, directory, exit code, 5 MB of input, signals, a terminal and its size; forward", "as asked")

    def test_a_network_of_the_jobs_own(self):
        more = "container: {network: job}\nenv: {PEERS: '{{shoal.addresses.worker}}'}\n"
        said = ("test $SHOAL_INDEX = 1 || { nc -l -p $SHOAL_PORT >/dev/null; exit 0; }; test $(ls /sys/class/net | wc -l) = 2; "
                "for _ in $(seq 200); do echo hello | nc -w 1 worker-0 $(echo $PEERS | sed 's/,.*//; s/.*://') && exit 0; sleep 0.05; done; exit 1")
        file = self.write(f"name: test\nimage: {self.IMAGE}\nroles:\n  worker: {{replicas: 2, ports: [talk]}}\n{more}"
                          f"command: [sh, -c, {json.dumps(said)}]\n")
        self.shoal("run", file)
        self.assertEqual([one["Name"] for one in api("GET", "/networks") if one["Name"].startswith("shoal-")], [])
        self.row("a network of the job's own", "tasks talk by their names, see no other interface; it is removed with the job")

    @unittest.skipUnless(shutil.which("docker-registry"), "there is no docker-registry here")
    def test_an_image_of_a_private_registry(self):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        server, image = f"127.0.0.1:{port}", f"127.0.0.1:{port}/acme/train"
        import crypt  # of Debian 12's Python; gone from 3.13
        hashed = crypt.crypt("s:cret", crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))
        users = self.write(f"ann:{hashed}\n", "users")
        settings = self.write(json.dumps({
            "version": 0.1, "log": {"level": "error"}, "http": {"addr": server},
            "storage": {"filesystem": {"rootdirectory": self.path("registry")}},
            "auth": {"htpasswd": {"realm": "test", "path": users}}}), "registry.yml")
        registry = subprocess.Popen(["docker-registry", "serve", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(registry.wait)
        self.addCleanup(registry.kill)
        login = base64.urlsafe_b64encode(json.dumps({"username": "ann", "password": "s:cret", "serveraddress": server}).encode()).decode()
        api("POST", f"/images/{self.IMAGE}/tag?repo={image}&tag=7")

        def push():
            return "digest" in subprocess.run(
                ["curl", "--silent", "--max-time", "60", "--unix-socket", os.environ["DOCKER_HOST"][len("unix://"):], "-X", "POST", "-H",
                 f"X-Registry-Auth: {login}", f"http://docker/v1.40/images/{image}/push?tag=7"], capture_output=True, text=True).stdout

        self.assertTrue(until(push, 20))
        api("DELETE", f"/images/{image}:7")
        os.mkdir(self.path("client"))
        self.env["DOCKER_CONFIG"] = self.path("client")
        job = self.write(f"name: test\nimage: {image}:7\ncommand: [sh, -c, 'echo pulled']\nroles: {{worker: {{replicas: 1}}}}\n")
        self.write(json.dumps({"auths": {}}), "client/config.json")
        refused = self.shoal("run", job, code=1)
        self.assertRegex(refused, "image .* is not on this machine and could not be pulled: .*(no basic auth|unauthorized)")
        secret = base64.b64encode(b"ann:s:cret").decode()
        self.write(json.dumps({"auths": {server: {"auth": secret}}}), "client/config.json")
        self.assertIn("pulled", self.shoal("run", job))
        api("DELETE", f"/images/{image}:7")
        self.row("an image of a private registry", "pulled with what `docker login` stored; without it: " + refused.strip().splitlines()[-1][-60:])

    @unittest.skipUnless(os.environ.get("SHOAL_TEST_OWN_IMAGE"), "it compiles everything, far more than 3 minutes; SHOAL_TEST_OWN_IMAGE=1 does it")
    def test_our_own_image(self):
        """docker/Dockerfile as it is, by the daemon's own builder, on a Debian that was made here."""
        self.check_own_image("our own image, compiled in it", ())

    @unittest.skipUnless(shoal_image.can_be_made(), "there is no mmdebstrap here, which makes the image's Debian")
    def test_our_own_image_of_these_programs(self):
        """Its last stage, with what was compiled outside."""
        self.check_own_image("our own image, of programs compiled outside", (SHOAL, SHOAL + "-task"))

    def check_own_image(self, what, binaries):
        """A training in it, as its own user, and with nothing to write to but its data."""
        corpus = self.corpus()
        shared = self.path("data")
        os.mkdir(shared)
        os.chmod(shared, 0o777)  # the image's user is another than ours
        shutil.copy(corpus, shared)
        shoal_image.build("shoal-test/own:1", binaries)
        built = time.monotonic() - self.begun
        words = ["train", "word2vec", "--data", "DATA/text", "--output", "DATA/vectors", "--dim", "32", "--epochs", "2", "--min-count", "1",
                 "--deterministic", "--seed", "3"]
        self.shoal(*[word.replace("DATA/vectors", self.path("here")).replace("DATA/text", corpus) for word in words], "--engine", "local")
        code, said = shoal_image.run("shoal-test/own:1", [word.replace("DATA", "/data") for word in words],
                                   {"ReadonlyRootfs": True, "Tmpfs": {"/tmp": "mode=1777"}, "Binds": [f"{shared}:/data"],
                                    "NetworkMode": "host"})
        self.assertEqual(code, 0, said)
        models = []
        for path in (self.path("here"), os.path.join(shared, "vectors")):
            with open(path + "/vectors.bin", "rb") as file:
                models.append(file.read())
        self.assertEqual(models[0], models[1])
        self.assertEqual(os.stat(os.path.join(shared, "vectors/vectors.bin")).st_uid, 10001)
        self.row(f"{what}, built in {built:.0f} s: word2vec as user 10001, read-only root", "the same bytes as outside")

    def test_documented_commands(self):
        """As printed. The daemon here has no network of its own, which `docker build` needs; test_our_own_image builds the same file."""
        absent = {"docker build": "the daemon has no network by default"}
        if shoal_image.can_be_made():
            shoal_image.build("shoal", (SHOAL, SHOAL + "-task"))
        else:
            absent["docker run"] = "there is no mmdebstrap, which makes the image's Debian"
        ran = documented_commands.run_all("docker", self.IMAGE, exports={"DOCKER_HOST": os.environ["DOCKER_HOST"]}, absent=absent)
        self.row("documented commands as printed", f"{len(ran)}")

    # ---- Faults ----

    def test_a_worker_that_is_killed_is_made_again(self):
        job = self.start("run", self.job(
            "[ $SHOAL_ATTEMPT -gt 0 ] && echo again && exit 0; echo first; sleep 1000", 1))
        self.assertTrue(until(lambda: of_role("worker")))
        self.assertTrue(until(lambda: "first" in self.logs()))
        api("POST", f"/containers/{of_role('worker')['Id']}/kill?signal=KILL")
        self.assertIn("again", self.finish(job))
        self.row("a worker's container killed", "made again; succeeded")

    def test_a_coordinator_that_is_removed_is_made_again(self):
        job = self.start("run", self.job("sleep 6; echo done", 2))
        self.assertTrue(until(lambda: of_role("worker", 1)))
        api("DELETE", f"/containers/{of_role('coordinator')['Id']}?force=true")
        self.assertIn("done", self.finish(job))
        self.row("the coordinator's container removed by force", "made again; succeeded, programs ran on")

    def daemon_goes(self, how):
        daemon = os.path.join(os.environ["SHOAL_TEST_DOCKER"], "daemon")
        job = self.start("run", self.job("sleep 4; echo done", 2))
        self.assertTrue(until(lambda: of_role("worker", 1)))
        subprocess.run([daemon, how], check=True)
        until(lambda: job.poll() is not None, 1)  # the job does not end for that
        subprocess.run([daemon, "start"], check=True)
        out = self.finish(job)
        self.assertIn("done", out)
        self.row(f"the daemon: {how}, 1 s later start", "succeeded")

    def test_the_daemon_is_restarted(self):
        self.daemon_goes("stop")

    def test_the_daemon_is_killed(self):
        self.daemon_goes("kill")

    def test_out_of_memory_is_told_from_a_kill(self):
        out = self.shoal("run", self.job(
            "tail /dev/zero", 1, resources="    resources: {memory: 48Mi}\n    restart: {limit: 0}\n"), code=1)
        self.assertIn("exceeded its 48 MiB", out)
        self.row("a program over its memory limit", out.strip().splitlines()[-1])

    def test_an_image_that_is_nowhere(self):
        job = self.write("name: test\nimage: localhost:1/no/such:image\nroles: {worker: {replicas: 2, command: [\"true\"]}}\n")
        out = self.shoal("run", job, code=1)
        self.assertRegex(out, r"image localhost:1/no/such:image is not on this machine and could not be pulled: ")
        self.row("image nowhere", out.strip().splitlines()[-1])

    def test_a_program_that_is_not_in_the_image(self):
        out = self.shoal("run", self.write(
            f"name: test\nimage: {self.IMAGE}\nroles: {{worker: {{replicas: 1, command: [python3, x.py]}}}}\n"), code=1)
        self.assertIn("python3", out)
        self.row("program not in the image", out.strip().splitlines()[-1])

    def test_no_image(self):
        out = self.shoal("run",
                         self.write("name: test\nroles: {worker: {replicas: 1, command: [python3, x.py]}}\n"), code=2)
        self.assertIn("image", out)
        self.row("no image", out.strip().splitlines()[-1])

    def test_a_controller_that_is_killed_leaves_nothing(self):
        job = self.start("run", self.job("sleep 1000", 2))
        self.assertTrue(until(lambda: of_role("worker", 1)))
        job.send_signal(signal.SIGKILL)
        job.communicate()
        # Its coordinator ends the programs; the next command clears their containers away.
        self.assertTrue(until(lambda: not containers(running=True), 60))
        self.shoal("jobs")
        self.assertEqual(containers(), [])
        self.row("the controller killed with -9", "programs stopped by the coordinator, cleared by the next command")

    def test_ctrl_c(self):
        job = self.start("run", self.job("trap 'echo saved; exit 0' TERM; echo trapped; while :; do sleep 1; done", 2))
        self.assertTrue(until(lambda: self.logs().count("trapped") == 2))
        job.send_signal(signal.SIGINT)
        self.finish(job, 130)
        self.row("Ctrl-C", "stopped, nothing left")

    def test_no_daemon(self):
        self.env["DOCKER_HOST"] = "unix://" + self.path("nobody.sock")
        out = self.shoal("run", self.job("true"), code=5)
        self.assertIn("does not answer", out)
        self.assertIn("DOCKER_HOST=unix://PATH", out)
        self.row("no daemon", out.strip().splitlines()[-1])

    def test_what_could_not_be_removed_is_removed_later(self):
        daemon = os.path.join(os.environ["SHOAL_TEST_DOCKER"], "daemon")
        job = self.start("run", self.job("sleep 1000", 2))
        self.assertTrue(until(lambda: of_role("worker", 1)))
        subprocess.run([daemon, "kill"], check=True)
        try:
            job.send_signal(signal.SIGINT)
            self.assertIn("resources of the job may remain", self.finish(job, 130))
        finally:
            subprocess.run([daemon, "start"], check=True)
        self.assertNotEqual(containers(), [])
        self.assertIn("unremoved", self.ask("doctor").stdout)
        recorded, = glob.glob(self.path("state/leftovers/*"))
        with open(recorded) as file:
            leftover = json.load(file)
        with open(recorded, "w") as file:
            json.dump(dict(leftover, tried=0), file)  # a minute ago
        self.shoal("jobs")
        self.assertEqual((containers(), os.listdir(self.path("state/leftovers"))), ([], []))
        self.row("Ctrl-C while the daemon is away", "recorded, cleared by a later command")

    def test_a_paused_worker_is_made_again(self):
        job = self.start("run", self.job(
            "[ $SHOAL_ATTEMPT -gt 0 ] && echo again && exit 0; echo first; sleep 1000", 1))
        self.assertTrue(until(lambda: "first" in self.logs()))
        api("POST", f"/containers/{of_role('worker')['Id']}/pause")
        self.assertIn("again", self.finish(job))
        self.row("a worker's container paused", "made again after 30 s; succeeded")

    # ---- Plan ----

    def test_the_plan_is_what_is_sent(self):
        file = self.job("sleep 1000", 1, more="env: {MY_PASSWORD: hush, PLAIN: seen}\n")
        out = self.shoal("plan", file, "--engine", "docker")
        self.assertNotIn("hush", out)
        self.assertIn("docker ps -aq --filter label=shoal.dev/job=test-ID | xargs -r docker rm -f", out)
        planned = [json.loads(part) for part in re.findall(r"^\{.*?^\}", out, re.S | re.M)]
        job = self.start("run", file)
        self.assertTrue(until(lambda: of_role("worker")))
        made = api("GET", f"/containers/{of_role('worker')['Id']}/json")
        worker = [one for one in planned if one["Labels"]["shoal.dev/role"] == "worker"][0]
        identity = made["Config"]["Labels"]["shoal.dev/job"]
        there = json.loads(json.dumps(worker).replace("test-ID", identity))
        self.assertEqual(made["Config"]["Entrypoint"], there["Entrypoint"])
        self.assertEqual(made["Config"]["User"], there["User"])
        writable = lambda mounts: [dict(mount, ReadOnly=mount.get("ReadOnly", False)) for mount in mounts]
        self.assertEqual(writable(made["HostConfig"]["Mounts"]), there["HostConfig"]["Mounts"])
        self.assertEqual(made["HostConfig"]["NetworkMode"], "host")
        self.shoal("stop", "test")
        self.finish(job, 130)
        self.row("plan --engine docker", "what the daemon has of it is the same; no secret in it")


def remove_all():
    for one in containers():
        api("DELETE", f"/containers/{one['Id']}?force=true")


if __name__ == "__main__":
    if sys.argv[1:] == ["--remove-all"]:
        remove_all()
        sys.exit(0)
    sys.exit(main(DockerJobs))
