"""examples/embedding in small, as a job: two servers, two workers with numpy; and what `shoal tables` says meanwhile."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(os.environ["SHOAL_BIN"]))


def tables(home, *arguments):
    return subprocess.run([home.binary, "tables", *arguments], env=home.environ(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)


def look(home):
    """The job's tables while it runs, once both are there."""
    done = tables(home, "embedding-small", "--json")
    if done.returncode != 0:
        return None
    shown = json.loads(done.stdout)
    names = {table["table"]: table for table in shown["tables"]}
    return shown if names.keys() == {"dense", "emb"} and names["emb"]["rows_pushed"] > 0 else None


def check_tables(home, shown):
    emb = next(table for table in shown["tables"] if table["table"] == "emb")
    assert emb["kind"] == "sparse" and emb["dim"] == 16 and emb["optimizer"].startswith("adagrad lr 0.3"), emb
    assert emb["rows_pushed"] >= emb["rows"] > 0 and sum(emb["bytes_by_server"]) == emb["bytes"], emb
    assert [server["server"] for server in shown["servers"]] == [0, 1], shown["servers"]
    row = json.loads(tables(home, "embedding", "emb", "--row", "0", "--json").stdout)
    assert row["row"] == 0 and len(row["values"]) == 16 and any(row["values"]), row
    text = tables(home, "embedding", "emb").stdout
    assert re.search(r"keys +sparse", text) and "MOST REQUESTED" in text, text
    wrong = tables(home, "embedding", "emv")
    assert wrong.returncode == 4 and "did you mean emb?" in wrong.stderr, wrong
    wrong = tables(home, "embedding", "dense", "--row", "1")
    assert wrong.returncode == 4 and "has the rows 0 to 0" in wrong.stderr, wrong
    wrong = tables(home, "embedding", "--row", "1")
    assert wrong.returncode == 2 and "got no table" in wrong.stderr, wrong
    wrong = tables(home, "embedding", "--role", "workre")
    assert wrong.returncode == 4 and "did you mean worker?" in wrong.stderr, wrong


def main():
    if not os.path.isdir(os.path.join(BUILD, "python", "shoal", "ps")):
        print("skipped: the Python module has not been built here")
        sys.exit(77)
    with harness.Home(os.environ["SHOAL_BIN"]) as home:
        job = os.path.join(harness.SOURCE, "examples", "embedding", "small.yaml")
        run = home.start("run", job, "--set", f"env.PYTHONPATH={BUILD}/python")
        shown = harness.poll_until(lambda: look(home) or run.poll() is not None, 60, pause=0.05)
        said = open(run.log).read()
        assert shown and shown is not True, said
        check_tables(home, shown)
        assert run.wait(120) == 0, open(run.log).read()
        said = open(run.log).read()
        losses = [float(loss) for loss in re.findall(r"worker \d: .* loss ([0-9.]+)", said)]
        assert len(losses) == 2 and max(losses) < 0.60, said
        over = tables(home, "embedding")
        assert over.returncode == 1 and "can be inspected only while a job runs" in over.stderr, over
        assert tables(home, "nonsense").returncode == 4
        print(f"embedding_test: ok, losses {losses}")


if __name__ == "__main__":
    main()
