"""Compares the manifests of tests/cluster/kubectl_manifests under plain kubectl and under `shoal run --engine kubernetes`.

Their programs print what they find (observe.c). Each difference is one that a note of `shoal run` names, or one of KNOWN, whose reason
stands in a document; any other is a fault. kubernetes_test.py runs it as one of its tests; SHOAL_TEST_BESIDE=REGEX: of these manifests alone.
"""
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NAMESPACE = "beside"
AT_ONCE = 4
GIVEN = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"level": "7", "model.json": '{"dim": 100}\n'}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"token": "s3cret", "user": "ann"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": NAMESPACE}, "value": 10},
]
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
SHOWN = ("hosts", "hostname", "resolv.conf")  # line by line already
PAGE = "docs/engines/kubernetes.md"
# (the names of what is seen, where it is documented, a text that stands there)
KNOWN = [
    (r"env SHOAL_\w+|fd open", "docs/job-file.md", "`SHOAL_ROLE` and `SHOAL_INDEX`"),
    (r"env CUDA_VISIBLE_DEVICES", "docs/job-file.md", "A task without GPUs sees none."),
    (r"env TMPDIR", "docs/job-file.md", "`TMPDIR`, unless set in `env`"),
    (r"env HOME", "docs/job-file.md", "`HOME` is set to it, too"),
    (r"env (PWD|SHLVL|_)", "docs/import.md", "by a `sh -c` before the command"),
    (r"env HOSTNAME|host name|hosts \d+", PAGE, "| a role | one Indexed Job"),
    (r"(mount|entry|file) /\.shoal.*", PAGE, "the launcher"),
    (r"mount /dev/shm", PAGE, "One at `/dev/shm` is in the place of ours"),
    (rf"(mount|entry|file) {ACCOUNT}.*", PAGE, "Pods get no token"),
    (r"status (NoNewPrivs|Seccomp)", PAGE, "`seccompProfile: RuntimeDefault` and no gain of privileges"),
]
# (the names of what is seen, or of manifest and that, and what a note says of it); \1 is the first group of the name.
TOLD = [
    (r"env ([\w.-]+)", r"\b\1\b|variables came from a config map or secret"),
    (r"(?:mount|entry|file) (/[^/]+(?:/[^/]+)?).*", r" at \1"),
    (r"prepared: (?:entry|file) /data/text", "ran before the program"),
    (r"dir working|output|env PWD", "in which directory the program starts"),
    (r"prepared: (?:verdict|runs|output)", "ran before the program"),
    (r"(?:fails-in-each-pod|leaves-files): (?:verdict|runs)", "in the same container"),
    (r"fails-uncounted: (?:verdict|runs)", "Ignore started a pod again"),
    (r"resolv .*", "how names are resolved"),
]
# The same of comments that `shoal import` writes and `shoal run` only counts.
MENTIONED = [
    (r"env ([\w.-]+)", r"\1 came from the pod's field"),
]


def facts_of(lines):
    """What one run of the program found, or nothing."""
    found = {}
    for line in lines:
        if line.startswith("seen {"):
            if line is lines[-1] and not line.endswith("}"):  # of a program that was killed
                continue
            one = json.loads(line.removeprefix("seen "))
            found.update((key, value) for key, value in one.items() if not key.startswith("file /etc/") or key.split("/")[2] not in SHOWN)
    return plain(found) if found else None


def plain(found):
    """Without what is each pod's own: its address and its name."""
    name = found.get("host name", "").split(".")[0]
    own = next((found[key].split()[0] for key in found if key.startswith("hosts ") and name in found[key].split()[1:]), "")
    for key, value in found.items():
        if own and own != "127.0.0.1":
            value = value.replace(own, "<address>")
        found[key] = value.replace(name, "<name>") if "-" in name else value
    return found


def runs_of(text):
    """The lines of each run of the program in their order, each once, by the time that it says first."""
    runs = {}
    begun = ""
    for line in text.splitlines():
        if line.startswith("seen begin "):
            begun = line
            runs[begun] = []
        elif begun:
            runs[begun].append(line)
    return [runs[begun] for begun in sorted(runs)]


class Notes:
    """What `shoal run` says of a manifest, and what `shoal import` writes into the job file."""

    def __init__(self, said, losses):
        self.said = [line for line in said.splitlines() if re.match(r"shoal: (note|warning)", line)]
        self.written = [loss["sentence"] for loss in losses]
        self.refused = said.strip().splitlines()[-1] if said.strip() else ""


class Side:
    """What was seen of one job: its verdict, and of each index the number of runs and what the first one found and printed."""

    def __init__(self, succeeded, texts):
        runs = {index: runs_of(text) for index, text in texts.items()}
        self.facts = {"verdict": "succeeded" if succeeded else "failed"}
        for index, of_index in sorted(runs.items()):
            self.facts[f"{index} runs"] = str(len(of_index))
            if of_index and facts_of(of_index[0]):
                self.facts.update({f"{index} {key}": value for key, value in facts_of(of_index[0]).items()})
                self.facts[f"{index} output"] = "\n".join(line for line in of_index[0] if not line.startswith("seen ")).rstrip()


def differences(there, here):
    """(name, value of plain Kubernetes, value here), sorted; a name without its index."""
    found = set()
    for key in there.facts.keys() | here.facts.keys():
        index = key.split()[0]
        # Pods that go with the end of their Job may be gone before they are read.
        if index.isdigit() and f"{index} argv 0" not in there.facts:
            continue
        ours, theirs = here.facts.get(key), there.facts.get(key)
        if ours != theirs:
            found.add((re.sub(r"^\d+ ", "", key), theirs, ours))
    return sorted(found, key=lambda one: one[0])


def reason_of(manifest, name, notes):
    """Why it may differ: a note or a document; nothing if nobody says it."""
    for rules, texts in ((TOLD, notes.said), (MENTIONED, notes.written)):
        for pattern, told in rules:
            match = re.fullmatch(pattern, name, re.S) or re.fullmatch(pattern, f"{manifest}: {name}", re.S)
            told = told.replace(r"\1", re.escape(match[1])) if match and match.groups() else told
            if match and (note := next((note for note in texts if re.search(told, note)), None)):
                return note
    return next((path for pattern, path, _ in KNOWN if re.fullmatch(pattern, name)), None)


def is_known(name):
    return any(re.fullmatch(pattern, name) for pattern, _, _ in KNOWN)


class KubectlComparison:
    """Tests of KubernetesJobs."""

    def kube(self, *arguments, check=True, text=None):
        done = subprocess.run(["kubectl", "-n", NAMESPACE, *arguments], capture_output=True, text=True, check=False, input=text, timeout=60)
        self.assertTrue(done.returncode == 0 or not check, done.stderr)
        return done.stdout

    def test_manifests_beside_kubectl(self):
        for _, path, text in KNOWN:
            with open(os.path.join(HERE, "..", "..", path)) as file:
                self.assertIn(text, file.read(), path)
        self.kube("create", "namespace", NAMESPACE)
        self.addCleanup(self.kube, "delete", "priorityclass", NAMESPACE, "pv", NAMESPACE, "--wait=false", check=False)
        self.addCleanup(self.clear_beside)
        files = self.given()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            plain_jobs = pool.submit(self.with_kubectl, files)
            ours = dict(zip(files, pool.map(self.with_shoal, files.values())))
            theirs = plain_jobs.result()
        silent, told = [], 0
        for name in files:
            here, notes = ours[name]
            if here is None:
                told += 1
                print(f"{name}: refused: {notes.refused}")
                continue
            different = [(*one, reason_of(name, one[0], notes)) for one in differences(theirs[name], here)]
            silent += [f"{name}: {what}: {was!r} with kubectl, {now!r} here" for what, was, now, reason in different if reason is None]
            told += len(different)
            print(f"{name}: {theirs[name].facts['verdict']} with kubectl, {here.facts['verdict']} here; of {len(theirs[name].facts)} things seen "
                  f"{len(different)} differ: " + ", ".join(one[0] for one in different if not is_known(one[0])))
        if silent:
            self.fail(f"{len(silent)} differences that nothing tells:\n" + "\n".join(silent))
        self.row(f"{len(files)} manifests by kubectl and by shoal", f"the same, or told: {told} differences")

    def clear_beside(self):
        """Jobs first: their controller would wait to replace pods, which a namespace that is being deleted does not let it."""
        self.kube("delete", "jobs", "--all", check=False)
        self.kube("delete", "namespace", NAMESPACE, check=False)

    def given(self):
        """The manifests by name, and in the cluster what they name."""
        for place in ("host/data/sub", "host/claim"):
            os.makedirs(self.path(place))
        os.chmod(self.home, 0o755)
        for name in ("host/data/one", "host/data/sub/two", "host/claim/three"):
            with open(self.path(name), "w") as file:
                file.write("text of " + name + "\n")
        self.kube("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": GIVEN}))
        self.claim(NAMESPACE, "claimed", self.path("host/claim"))
        self.addCleanup(self.kube, "delete", "pv", "claimed", "--wait=false", check=False)
        files = {}
        for path in sorted(glob.glob(os.path.join(HERE, "kubectl_manifests", "*.yaml"))):
            with open(path) as file:
                text = file.read()
            name = os.path.basename(path).removesuffix(".yaml")
            if not re.fullmatch(os.environ.get("SHOAL_TEST_BESIDE", ".*"), name):
                continue
            files[name] = self.write(text, name + ".yaml")
        return files

    def host_side(self, path, side):
        """The manifest with the directories of that side: what one job writes there the other does not see."""
        with open(path) as file:
            text = file.read()
        place = self.path("host")
        return text.replace("@HOST@/state", f"{place}/state-{side}").replace("@HOST@", place)

    # ---- plain Kubernetes ----

    def with_kubectl(self, files):
        self.kube("create", "-f", "-", text="---\n".join(self.host_side(path, "kubectl") for path in files.values()))
        texts = {name: {} for name in files}  # of each: by pod and run
        ended = {}
        deadline = time.monotonic() + 240
        while len(ended) < len(files) and time.monotonic() < deadline:
            jobs = json.loads(self.kube("get", "jobs", "-l", "!shoal.dev/job", "-o", "json"))["items"]
            self.read_pods(texts)
            for job in jobs:
                for condition in job.get("status", {}).get("conditions", []):
                    if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
                        ended[job["metadata"]["name"]] = condition["type"] == "Complete"
            time.sleep(0.5)
        self.read_pods(texts)
        self.assertEqual(sorted(files.keys() - ended.keys()), [], "did not end with kubectl")
        return {name: Side(ended[name], self.by_index(texts[name])) for name in files}

    def read_pods(self, texts):
        """The logs so far: a pod may be gone when its job has ended."""
        for pod in json.loads(self.kube("get", "pods", "-l", "batch.kubernetes.io/job-name,!shoal.dev/job", "-o", "json"))["items"]:
            meta = pod["metadata"]
            of_job = texts.get(meta["labels"]["batch.kubernetes.io/job-name"])
            states = [one for one in pod["status"].get("containerStatuses", []) if one["name"] == "main"]
            if of_job is None or not states or "waiting" in states[0]["state"]:
                continue
            index = int(meta.get("annotations", {}).get("batch.kubernetes.io/job-completion-index", 0))
            restarts = states[0]["restartCount"]
            ended = "terminated" in states[0]["state"]
            for key, more in (((index, meta["name"], restarts, ended), []), ((index, meta["name"], restarts, "previous"), ["--previous"])):
                if "seen end" not in of_job.get(key, "") and (restarts > 0 or not more):
                    of_job[key] = self.kube("logs", meta["name"], "-c", "main", *more, check=False)

    @staticmethod
    def by_index(of_pods):
        texts = {}
        for key, text in of_pods.items():
            texts[key[0]] = texts.get(key[0], "") + text + "\n"
        return texts

    # ---- Shoal ----

    def finish_in_time(self, job, path):
        try:
            return self.ask("run", "--engine", "kubernetes", path, "--set", "limits.gather=60s", timeout=150)
        except subprocess.TimeoutExpired as left:
            self.ask("stop", job)
            text = lambda said: (said or b"").decode()
            return subprocess.CompletedProcess(left.cmd, 1, text(left.stdout) + "did not end", text(left.stderr))

    def with_shoal(self, path):
        """(what was seen, what its notes say); no Side for a manifest that is refused, which is told."""
        name = os.path.basename(path)
        mine = self.write(self.host_side(path, "shoal"), "shoal-" + name)
        done = self.finish_in_time(name.removesuffix(".yaml"), mine)
        notes = Notes(done.stderr, json.loads(self.ask("import", "--json", mine).stdout or '{"losses": []}')["losses"])
        if done.returncode == 2:
            return None, notes
        with open(mine) as file:
            indexed = "completionMode: Indexed" in file.read()
        texts = {}
        for line in done.stdout.splitlines():
            if match := re.match(r"task-(\d+) *\| (.*)", line):
                texts[int(match[1])] = texts.get(int(match[1]), "") + match[2] + "\n"
        if not indexed:
            texts = {0: "".join(texts.values())}
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        return Side(done.returncode == 0, texts), notes
