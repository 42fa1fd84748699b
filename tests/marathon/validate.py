"""Checks requests to the double against schema.json: a small part of JSON Schema, in which unlisted fields are
rejected."""

import json
import pathlib
import re

TYPES = json.loads((pathlib.Path(__file__).parent / "schema.json").read_text())
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool}


def is_kind(value, kind):
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def number_errors(value, spec, path):
    if "minimum" in spec and value < spec["minimum"]:
        yield path, f"{value} is less than {spec['minimum']}"
    if "maximum" in spec and value > spec["maximum"]:
        yield path, f"{value} is more than {spec['maximum']}"


def string_errors(value, spec, path):
    if not spec.get("minLength", 0) <= len(value) <= spec.get("maxLength", 1 << 20):
        yield path, "is too short or too long"
    if "enum" in spec and value not in spec["enum"]:
        yield path, f"{value!r} is none of {spec['enum']}"
    if "pattern" in spec and not re.search(spec["pattern"], value):
        yield path, f"{value!r} does not match {spec['pattern']}"


def array_errors(value, spec, path):
    if not spec.get("minItems", 0) <= len(value) <= spec.get("maxItems", 1 << 20):
        yield path, "has too few or too many items"
    if spec.get("uniqueItems") and len({json.dumps(one, sort_keys=True) for one in value}) < len(value):
        yield path, "has an item twice"
    for i, item in enumerate(value):
        yield from errors(item, spec["items"], f"{path}({i})")


def object_errors(value, spec, path):
    for name in spec.get("required", ()):
        if name not in value:
            yield f"{path}/{name}", "undefined"
    for name, item in value.items():
        if name in spec.get("properties", {}):
            yield from errors(item, spec["properties"][name], f"{path}/{name}")
        elif "values" in spec:
            yield from errors(item, spec["values"], f"{path}/{name}")
        else:
            yield f"{path}/{name}", "unknown field"


def errors(value, spec, path=""):
    """(path, error) of each thing that is wrong with it."""
    if "ref" in spec:
        spec = TYPES[spec["ref"]]
    if "oneOf" in spec:
        tried = [list(errors(value, one, path)) for one in spec["oneOf"]]
        if [] not in tried:
            yield from min(tried, key=len)
        return
    kind = spec["type"]
    if not is_kind(value, kind):
        yield path, f"expected {kind}"
        return
    check = {"object": object_errors, "array": array_errors, "string": string_errors}.get(kind, number_errors)
    if kind != "boolean":
        yield from check(value, spec, path)


def app_errors(app, path):
    """What the types do not say: Marathon's own rules."""
    if ("cmd" in app) == ("args" in app) and "container" not in app:
        yield path, "AppDefinition must either contain one of 'cmd' or 'args', and/or a 'container'."
    container = app.get("container", {})
    if container.get("type") == "DOCKER" and "docker" not in container:
        yield f"{path}/container/docker", "not defined"
    strategy = app.get("unreachableStrategy", {})
    if isinstance(strategy, dict) and strategy.get("inactiveAfterSeconds", 0) > strategy.get("expungeAfterSeconds", 0):
        yield f"{path}/unreachableStrategy", "inactiveAfterSeconds must be less or equal to expungeAfterSeconds"
    named = [value["secret"] for value in app.get("env", {}).values() if isinstance(value, dict)]
    for name in named:
        if name not in app.get("secrets", {}):
            yield f"{path}/env", f"the secret {name} is not defined"
    for check in app.get("healthChecks", ()):
        if "command" not in check or check["timeoutSeconds"] < 1 or check["intervalSeconds"] < 1:
            yield f"{path}/healthChecks", "a COMMAND needs its command, and times of at least a second"
    operators = {"UNIQUE", "CLUSTER", "GROUP_BY", "LIKE", "UNLIKE", "MAX_PER", "IS"}
    for constraint in app.get("constraints", ()):
        if constraint[1] not in operators:
            yield f"{path}/constraints", f"{constraint[1]} is no operator"


def group_errors(group, path_id):
    yield from errors(group, TYPES["GroupUpdate"])
    if group.get("id") not in (path_id, None):
        yield "/id", f"is not {path_id}"
    for i, app in enumerate(group.get("apps", ())):
        if not app.get("id", "").startswith(path_id + "/"):
            yield f"/apps({i})/id", f"identifier {app.get('id')} is not child of {path_id}. Hint: use relative paths."
        yield from app_errors(app, f"/apps({i})")
