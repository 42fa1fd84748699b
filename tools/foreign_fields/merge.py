"""Takes published definitions into the tables of src/import/fields; verdicts and sentences that are there stay.

    merge.py TABLE --version TEXT [--openapi FILE --root NAME …] [--crd FILE …] [--schema ROOT=FILE …] [--raml FOLDER --library FILE --root NAME …]

Fields that a table has not yet become `undecided`, or `-` where the field that holds them decides."""
import argparse
import json
import os
import sys

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import schemas  # noqa: E402
import table  # noqa: E402


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file) if path.endswith(".json") else yaml.safe_load(file)


def definitions_of(arguments):
    found = {}

    def add(definitions):
        for name, fields in definitions.items():
            for field, kind in fields.items():
                found.setdefault(name, {}).setdefault(field, kind)

    for path in arguments.openapi:
        add(schemas.openapi(load(path), arguments.root))
    for given in arguments.crd:
        prefix, _, path = given.rpartition("=")
        add(schemas.custom_resource(load(path), prefix))
    for given in arguments.schema:
        root, _, path = given.partition("=")
        add(schemas.json_schema(load(path), root))
    if arguments.raml:
        add(schemas.raml(arguments.raml, arguments.library, arguments.root, arguments.prefix))
    return found


def merged(rows, found):
    """The old rows with the new types, and a row for each new field behind its definition's."""
    known = {(row.definition, row.field): row for row in rows}
    order = list(dict.fromkeys([row.definition for row in rows] + list(found)))
    result = []
    for name in order:
        result += [row for row in rows if row.definition == name]
        inherits = any(row.definition == name and row.verdict == "-" for row in rows)
        for field, (kind, required) in found.get(name, {}).items():
            mark = "!" if required else ""
            row = known.get((name, field))
            if row is None:
                result.append(table.Row(name, field, kind + mark, "-" if inherits else "undecided"))
            else:
                value = row.kind.rstrip("!").partition("=")
                row.kind = kind + value[1] + value[2] + mark
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--version", action="append", required=True, help="which schema of which version")
    parser.add_argument("--openapi", action="append", default=[])
    parser.add_argument("--crd", action="append", default=[], metavar="[PREFIX=]FILE")
    parser.add_argument("--schema", action="append", default=[], metavar="ROOT=FILE")
    parser.add_argument("--raml")
    parser.add_argument("--library")
    parser.add_argument("--prefix", default="", help="of the names of definitions from RAML")
    parser.add_argument("--root", action="append", default=[])
    arguments = parser.parse_args()
    versions, rows = table.read(arguments.table) if os.path.exists(table.path_of(arguments.table)) else ([], [])
    rows = merged(rows, definitions_of(arguments))
    kept = [one for one in versions if one not in arguments.version]
    table.write(arguments.table, kept + arguments.version, rows)
    undecided = sum(row.verdict == "undecided" for row in rows)
    print(f"{table.path_of(arguments.table)}: {len(rows)} fields, {undecided} undecided")


if __name__ == "__main__":
    main()
