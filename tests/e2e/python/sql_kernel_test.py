"""The notebook kernel of SQL by Jupyter's own test, and the magics of notebooks of Python.

Needs the packages ipykernel and jupyter_kernel_test: of the interpreter that runs this, or of the virtual environment that SHOAL_NOTEBOOK_VENV
names (`python3 -m venv DIR && DIR/bin/pip install ipykernel jupyter_kernel_test pandas`)."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.abspath(os.path.join(HERE, "..", "..", ".."))
BINARY = os.environ.get("SHOAL_BIN") or os.path.join(SOURCE, "build", "dev", "shoal")
NEEDED = ("ipykernel", "jupyter_kernel_test", "IPython")

if not all(importlib.util.find_spec(name) for name in NEEDED):
    other = os.path.join(os.environ.get("SHOAL_NOTEBOOK_VENV", "/nowhere"), "bin", "python")
    if os.environ.get("SHOAL_NOTEBOOK_SELF") or not os.access(other, os.X_OK):
        print("skipped: the packages ipykernel and jupyter_kernel_test are not installed; SHOAL_NOTEBOOK_VENV names an environment with them")
        sys.exit(77)
    sys.exit(subprocess.run([other, "-B", os.path.abspath(__file__), *sys.argv[1:]], env={**os.environ, "SHOAL_NOTEBOOK_SELF": "1"}, check=False).returncode)

sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(SOURCE, "python")]
import harness  # noqa: E402  pylint: disable=wrong-import-position
import jupyter_kernel_test  # noqa: E402  pylint: disable=wrong-import-position
import sql_test  # noqa: E402  pylint: disable=wrong-import-position

HOME = tempfile.mkdtemp(prefix="shoal-kernel-")
DATA = os.path.join(HOME, "people.csv")


def setUpModule():  # pylint: disable=invalid-name
    kernels = os.path.join(HOME, "jupyter", "kernels", "shoal-sql")
    os.makedirs(kernels)
    shutil.copy(os.path.join(SOURCE, "python", "kernel", "kernel.json"), kernels)
    sql_test.write_people(DATA, 2000, 1)
    os.environ.update(JUPYTER_PATH=os.path.join(HOME, "jupyter"), PYTHONPATH=os.path.join(SOURCE, "python"), SHOAL_SERVER="none",
                      SHOAL_HOME=os.path.join(HOME, "home"), HOME=HOME, IPYTHONDIR=os.path.join(HOME, "ipython"), SHOAL_DUCKDB=sql_test.DUCKDB,
                      PATH=os.path.dirname(BINARY) + ":" + os.environ["PATH"], PYTHONDONTWRITEBYTECODE="1")
    os.chdir(HOME)


def tearDownModule():  # pylint: disable=invalid-name
    os.chdir("/")
    shutil.rmtree(HOME, ignore_errors=True)


class SqlKernel(jupyter_kernel_test.KernelTests):
    """Jupyter's suite: what each attribute names is tested."""

    kernel_name = "shoal-sql"
    language_name = "sql"
    file_extension = ".sql"
    code_hello_world = "save overwrite hello as csv.`hello, world`;"
    completion_samples = [{"text": "!sho", "matches": {"show"}}, {"text": "load pa", "matches": {"parquet"}}]
    complete_code_samples = ["!show tables;", "load csv.`a` as t;", "!show jobs"]
    incomplete_code_samples = ["load csv.`a`", "set x = 'a'\n"]
    code_generate_error = "load cvs.`x` as t;"
    code_execute_result = [{"code": "!show formats;", "mime": "text/html"}]
    code_inspect_sample = "load"
    code_display_data = [{"code": "!show tables; !show formats;", "mime": "text/html"}]

    def test_execute_stdout(self):
        self.flush_channels()
        _, _ = self.execute_helper(code=f"load csv.`{DATA}` as hello;")
        super().test_execute_stdout()

    def test_train_shows_its_progress(self):
        self.flush_channels()
        reply, output = self.execute_helper(code=f"load csv.`{DATA}` as t; train t as FM.`m` where label='income' and epochs='20' as r;", timeout=60 * harness.PATIENCE)
        self.assertEqual(reply["content"]["status"], "ok", reply)
        updates = [m for m in output if m["msg_type"] in ("display_data", "update_display_data")]
        self.assertIn("succeeded", updates[-1]["content"]["data"]["text/plain"])
        self.assertEqual(len({m["content"]["transient"]["display_id"] for m in updates}), 1)
        self.assertTrue(any("<svg" in m["content"]["data"]["text/html"] for m in updates))
        self.assertIn("success", [m for m in output if m["msg_type"] == "execute_result"][0]["content"]["data"]["text/html"])

    def test_values_are_escaped(self):
        self.flush_channels()
        text = "set x = '''{\"a\": \"<script>alert(1)</script>\"}'''; load jsonStr.`x` as t;"
        _, output = self.execute_helper(code=text)
        page = [m for m in output if m["msg_type"] == "execute_result"][0]["content"]["data"]["text/html"]
        self.assertIn("&lt;script&gt;", page)
        self.assertNotIn("<script", page)

    def test_an_interrupt_stops_the_job(self):
        self.flush_channels()
        self.kc.execute(f"load csv.`{DATA}` as t; train t as FM.`long` where label='income' and epochs='100000' as r;")
        end = time.monotonic() + 60 * harness.PATIENCE
        while time.monotonic() < end:
            message = self.kc.get_iopub_msg(timeout=60 * harness.PATIENCE)
            self.assertNotEqual(message["msg_type"], "error", message["content"])
            if message["msg_type"] in ("display_data", "update_display_data") and "running" in message["content"]["data"]["text/plain"]:
                break
        self.km.interrupt_kernel()
        reply = self.kc.get_shell_msg(timeout=60 * harness.PATIENCE)
        self.assertEqual((reply["content"]["status"], reply["content"]["ename"]), ("error", "KeyboardInterrupt"), reply)
        self.flush_channels()
        _, output = self.execute_helper(code="!show jobs;")
        self.assertIn("cancelled", [m for m in output if m["msg_type"] == "execute_result"][0]["content"]["data"]["text/plain"])


class Magics(unittest.TestCase):
    """`%load_ext shoal` in IPython."""

    def test_all(self):
        from IPython.testing.globalipapp import start_ipython  # pylint: disable=import-outside-toplevel
        shell = start_ipython()
        shell.run_line_magic("load_ext", "shoal")
        shell.run_cell_magic("sql", "people -n 3", f"load csv.`{DATA}` as people;")
        self.assertEqual(len(shell.user_ns["people"]), 3)
        self.assertEqual(shell.run_line_magic("sql", "!show tables;").column("table"), ["people"])
        if importlib.util.find_spec("pandas"):
            import pandas  # pylint: disable=import-outside-toplevel
            shell.user_ns["frame"] = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
            shell.run_cell_magic("sql", "back -f -i frame", "save overwrite frame as json.`f.json`; load json.`f.json` as again;")
            self.assertEqual(shell.user_ns["back"]["a"].tolist(), [1, 2])
        shell.run_line_magic("shoal", "jobs")
        for line, cell in (("not a name!", "!show tables;"), ("-i missing", "!show tables;"), ("--none", "x")):
            with self.assertRaises(Exception):
                shell.run_cell_magic("sql", line, cell)


if __name__ == "__main__":
    unittest.main()
