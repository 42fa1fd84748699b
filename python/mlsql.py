"""The module `mlsql` of MLSQL's first generation, for scripts that `train t as DTFAlg.`path`` starts.

fit_param              the parameters of this task's group, as texts: fitParam.N.epochs is fit_param["epochs"]
internal_system_param  clusterSpec and roleSpec (JSON texts), checkpointDir, tempDataLocalPath, tempModelLocalPath, resource,
                       stopFlagNum
systemParam, kafka_param
validate_data          the rows of validateTable
params(), get_param(params, key, default)
read_data()            a function that gives all rows of the table in lists: for rows in read_data()(max_records=64)

Rows are dictionaries. Works under Python 2.7 and 3 and needs no other module. `shoal sql` puts a copy of it beside the script.
"""
import io
import json
import os

_PLAN = "MLSQL_PLAN"


def _load():
    path = os.environ.get(_PLAN)
    if not path:
        raise ImportError("the module mlsql works in scripts that a statement `train t as DTFAlg.` starts: %s is not set" % _PLAN)
    with io.open(path, encoding="utf-8") as f:
        return json.load(f)


def _cluster():
    with io.open(os.environ["SHOAL_CLUSTER_FILE"], encoding="utf-8") as f:
        return json.load(f)["roles"]


def _group(plan):
    role, index = os.environ["SHOAL_ROLE"], int(os.environ["SHOAL_INDEX"])
    for group in plan["groups"]:
        if group["role"] == role and group["index"] == index:
            return group
    raise ImportError("the statement has no group of parameters for %s %d" % (role, index))


def _rows(files):
    for path in files:
        with io.open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip():
                    yield json.loads(line)


_plan = _load()
_own = _group(_plan)

fit_param = _own["fitParam"]
kafka_param = _plan["kafkaParam"]
systemParam = _plan["systemParam"]
system_param = systemParam
internal_system_param = {
    "stopFlagNum": 1,
    "tempModelLocalPath": _own["model"],
    "tempDataLocalPath": _own["data"],
    "checkpointDir": _own["checkpoint"],
    "resource": _own["resource"],
    "clusterSpec": json.dumps(_cluster()),
    "roleSpec": json.dumps({"jobName": _own["role"], "taskIndex": _own["index"]}),
}
validate_data = list(_rows(_plan["validate"]))


def params():
    """All parameters as one dictionary."""
    return {"fitParam": fit_param, "kafkaParam": kafka_param, "systemParam": systemParam,
            "internalSystemParam": internal_system_param}


def get_param(p, key, default=None):
    """p[key], or the default."""
    return p[key] if key in p else default


def read_data():
    """A function that gives the rows of the table in lists of at most max_records."""
    def read(max_records=64, no_msg_count_break=None):
        batch = []
        for row in _rows(_plan["rows"]):
            batch.append(row)
            if len(batch) == max_records:
                yield batch
                batch = []
        if batch:
            yield batch
    return read
