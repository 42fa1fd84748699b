"""The module `mlsql` for the scripts that `train t as DTFAlg.`path``, PythonAlg and DTF start, as MLSQL's scripts import it.

fit_param              the parameters of this task's group, as texts: fitParam.N.epochs is fit_param["epochs"]
internal_system_param  clusterSpec and roleSpec (JSON texts), checkpointDir, tempDataLocalPath, tempModelLocalPath, resource,
                       stopFlagNum; of `predict` tempOutputLocalPath
systemParam, kafka_param
validate_data          the rows of validateTable
params(), get_param(params, key, default)
read_data()            a function that gives all rows of the table in lists: for rows in read_data()(max_records=64)
PythonProjectContext   of the second generation; scripts import it from pyjava.api.mlsql
sklearn_configure_params(model), sklearn_batch_data(function), get_validate_data()

Rows are dictionaries. A line "mlsql_validation_score:0.9" that the script prints is the score of its group. Works under Python 2.7 and 3
and needs no other module. `shoal sql` puts a copy of it beside the script.
"""
import io
import json
import os
import sys

_PLAN = "MLSQL_PLAN"


def _load():
    path = os.environ.get(_PLAN)
    if not path:
        raise ImportError("the module mlsql works in scripts that a statement `train t as DTFAlg.` starts: %s is not set" % _PLAN)
    with io.open(path, encoding="utf-8") as f:
        return json.load(f)


def _cluster():
    path = os.environ.get("SHOAL_CLUSTER_FILE")
    if not path or not os.path.exists(path):
        return {}
    with io.open(path, encoding="utf-8") as f:
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


class _Output(object):
    """Standard output, which keeps the score that a script prints."""

    def __init__(self, stream, path):
        self._stream, self._path, self._line = stream, path, ""

    def write(self, text):
        written = self._stream.write(text)
        lines = (self._line + text).split("\n")
        self._line = lines[-1][:256]
        for line in lines[:-1]:
            if line.startswith(_SCORE):
                with io.open(self._path, "w", encoding="utf-8") as f:
                    f.write(u"%s" % line[len(_SCORE):].strip())
        return written

    def __getattr__(self, name):
        return getattr(self._stream, name)


_SCORE = "mlsql_validation_score:"
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
if _own.get("output"):
    internal_system_param["tempOutputLocalPath"] = _own["output"]
validate_data = list(_rows(_plan["validate"]))
if _own.get("score"):
    sys.stdout = _Output(sys.stdout, _own["score"])


def params():
    """All parameters as one dictionary."""
    return {"fitParam": fit_param, "fitParams": fit_param, "kafkaParam": kafka_param, "systemParam": systemParam,
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


def _array(value):
    """The numbers of a vector: a list, or a dictionary as Spark writes a vector as JSON."""
    if not isinstance(value, dict):
        return value
    if "indices" not in value:
        return value["values"]
    numbers = [0.0] * int(value["size"])
    for index, number in zip(value["indices"], value["values"]):
        numbers[index] = number
    return numbers


def _columns():
    return get_param(fit_param, "inputCol", "features"), get_param(fit_param, "labelCol", "label")


def _xy(rows):
    features, label = _columns()
    return [_array(row[features]) for row in rows], [row[label] for row in rows]


def get_validate_data():
    """The rows of validateTable as two lists: features (column inputCol) and labels (labelCol)."""
    return _xy(validate_data)


def sklearn_configure_params(model):
    """Sets those attributes of a scikit-learn model that fit_param names, in the type that they have."""
    for name, value in fit_param.items():
        now = getattr(model, name, None)
        if not hasattr(model, name) or callable(now):
            continue
        if isinstance(now, bool):
            value = value == "true"
        elif isinstance(now, (int, float)):
            value = type(now)(value)
        setattr(model, name, value)


def sklearn_batch_data(function):
    """Calls function(features, labels, number of labels) for one batch of rows after another."""
    size = int(get_param(fit_param, "batchSize", 64))
    for rows in read_data()(max_records=size):
        features, labels = _xy(rows)
        function(features, labels, int(get_param(fit_param, "labelSize", -1)))


class PythonProjectContext(object):
    """What scripts of the second generation ask: the configuration and two paths."""

    def __init__(self):
        self.conf = {}
        self.read_params_once()

    def read_params_once(self):
        """Fills conf: parameters of the statement, clusterSpec, roleSpec, tempDataLocalPath, tempModelLocalPath."""
        self.conf = dict(fit_param)
        for name in ("clusterSpec", "roleSpec", "tempDataLocalPath", "tempModelLocalPath", "checkpointDir"):
            self.conf[name] = internal_system_param[name]
        # The statement's result lists the addresses of all tasks.
        if _own["role"] == "worker" and _own["index"] == 0:
            with io.open(_plan["cluster"], "w", encoding="utf-8") as f:
                f.write(u"%s" % internal_system_param["clusterSpec"])

    def input_data_dir(self):
        return self.conf["tempDataLocalPath"]

    def output_model_dir(self):
        return self.conf["tempModelLocalPath"]
