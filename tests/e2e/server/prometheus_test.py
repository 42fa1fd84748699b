"""Metrics, dashboards and alert rules: promtool checks them, a real Prometheus scrapes a server, and every metric that a file of
deploy/ names exists."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server  # noqa: E402  pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PATIENCE, SOURCE, poll_until  # noqa: E402  pylint: disable=wrong-import-position

GRAFANA = os.path.join(SOURCE, "deploy/grafana")
ALERTS = os.path.join(SOURCE, "deploy/prometheus/shoal-alerts.yaml")
REPORTS = """echo 'shoal.metric {"step": 1, "loss": 0.5, "weird\\u0022name": 1, "words_per_second": 7}'; sleep 1000"""
FORWARD = "forward: {away: {kind: syslog, url: \"udp://127.0.0.1:9\"}}\n"
NAME = re.compile(r"\b(?:shoal|process)_[a-z_]+\b")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def metrics_of(text):
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}


def expressions():
    """(file, expression) of all dashboards and alerts."""
    for name in sorted(os.listdir(GRAFANA)):
        with open(os.path.join(GRAFANA, name), encoding="utf-8") as f:
            board = json.load(f)
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield name, target["expr"]
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield name, variable["query"]
    with open(ALERTS, encoding="utf-8") as f:
        for line in f.read().replace(">-\n", "").splitlines():
            if not line.lstrip().startswith(("#", "summary", "description", "- alert")):
                yield "alerts", line


def one_task(script):
    """A job file with one task that runs the shell script."""
    return json.dumps({"name": "quick", "roles": {"worker": {"replicas": 1, "command": ["sh", "-c", script]}}})


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.options = ("--forward-logs", cls.server.home.write("forward.yaml", FORWARD))
        cls.server.start()
        cls.job = cls.server.submit(one_task(REPORTS), team="default")
        cls.server.wait_for(cls.job, ("running",))
        ready = poll_until(lambda: b'metric="loss"' in cls.server.get("/metrics").body, 60 * PATIENCE)
        assert ready, cls.server.get("/metrics").body

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (Debian's package prometheus)")
    def test_promtool(self):
        text = self.server.get("/metrics").body
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, b"", b""))
        checked = subprocess.run(["promtool", "check", "rules", ALERTS], capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked)

    def test_named_metrics_exist(self):
        there = metrics_of(self.server.get("/metrics").body.decode())
        named = set()
        for where, expression in expressions():
            for name in NAME.findall(expression):
                named.add(name)
                self.assertIn(name, there, where)
        self.assertGreater(len(named), 20)
        # Our own that no dashboard shows are those about single attempts only.
        self.assertEqual({name for name in there if name.startswith("shoal_")} - named,
                         {"shoal_log_forward_bytes_total", "shoal_logs_compressed_total", "shoal_logs_removed_jobs_total"})

    def test_documented(self):
        with open(os.path.join(SOURCE, "docs/metrics.md"), encoding="utf-8") as f:
            documented = set(NAME.findall(f.read()))
        self.assertEqual(metrics_of(self.server.get("/metrics").body.decode()) - documented, set())

    def test_dashboards(self):
        for name in os.listdir(GRAFANA):
            with open(os.path.join(GRAFANA, name), encoding="utf-8") as f:
                board = json.load(f)
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)), name)
            taken = set()
            for panel in board["panels"]:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(taken & cells, f"{name}: {panel['title']} overlaps")
                taken |= cells
                self.assertTrue(all(0 <= x < 24 for x, _ in cells))
                refs = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(refs), len(set(refs)))

    def test_another_team_sees_no_job(self):
        stranger = self.server.make_user("stranger", "blue")
        text = self.server.get("/metrics", stranger).body.decode()
        self.assertNotIn(self.job, text)
        self.assertNotIn("shoal_jobs_ended_total", text)

    @unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed (Debian's package prometheus)")
    def test_a_real_prometheus_scrapes(self):
        home = self.server.home
        config = home.write("prometheus.yaml", f"""\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{ALERTS}"]
scrape_configs:
  - job_name: shoal
    authorization: {{credentials_file: {self.server.token_file}}}
    static_configs: [{{targets: ["127.0.0.1:{self.server.port}"]}}]
""")
        port = free_port()
        with open(home.path("prometheus.log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={home.path('tsdb')}",
                                        f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

        def ask(target):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{target}", timeout=10) as reply:
                    return json.load(reply)["data"]
            except OSError:
                return None

        def value(query):
            data = ask("query?" + urllib.parse.urlencode({"query": query}))
            return [(one["metric"], float(one["value"][1])) for one in data["result"]] if data else []

        try:
            self.assertTrue(poll_until(lambda: [v for _, v in value("up")] == [1.0], 60 * PATIENCE, 0.2), value("up"))
            target = ask("targets")["activeTargets"][0]
            self.assertEqual((target["health"], target["lastError"]), ("up", ""))
            self.assertIn(1.0, [v for labels, v in value("shoal_jobs") if labels["state"] == "running"])
            losses = value('shoal_job_progress{metric="loss"}')
            self.assertEqual([(labels["job_id"], v) for labels, v in losses], [(self.job, 0.5)])
            self.assertTrue(poll_until(lambda: all(rule["health"] == "ok" for group in ask("rules")["groups"]
                                                   for rule in group["rules"]), 60 * PATIENCE, 0.5), ask("rules"))
            firing = {rule["name"] for group in ask("rules")["groups"] for rule in group["rules"] if rule["state"] == "firing"}
            self.assertNotIn("ShoalServerDown", firing)
            # Each panel's query is one that Prometheus takes.
            for where, expression in expressions():
                if where == "alerts" or expression.startswith("label_values"):
                    continue
                query = re.sub(r"\$[a-z]+", ".*", expression)
                self.assertIsNotNone(ask("query?" + urllib.parse.urlencode({"query": query})), (where, query))
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    unittest.main()
