"""The tables in src/import/fields: what becomes of every field of a foreign description.

A line is: definition, field, type (schemas.py; behind '=' a value that the test gives it; '!' behind a required
field's), verdict, sentence; tabs between. C++ includes a table as one string, hence its first and last line.

Options of sbatch (slurm.tsv, by hand from the manual pages of its versions) have the types text, flag and optional, which
has a value behind '=' only; behind a '/' the letter of the short form.

verdict    what `shoal import` does with the field
honoured   the job that is run differs by it
told       a comment in the imported file names it, and `shoal run` says so on the terminal
mentioned  a comment names it; `shoal run` only counts these: programs do not notice
refused    the import ends with an error that names it
within     its own fields say
-          what becomes of the field that holds it, at every place, becomes of it too
undecided  new in a version of the schema; script/lint refuses the table

honoured@ENGINE+told, +mentioned: by that engine; with others it is told so, by the sentence. honoured@ENGINE+own,
+own-mentioned: the importer has words of its own for what holds with others. A sentence `MEANT; INSTEAD` is what the comment of a told field
says: "VALUE said MEANT; not kept: INSTEAD".
"""
import os

VERDICTS = ("honoured", "told", "mentioned", "refused", "within", "-", "undecided")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "import", "fields")
HEAD, TAIL = 'R"fields(', ')fields"'


class Row:
    def __init__(self, definition, field, kind, verdict, sentence=""):
        self.definition, self.field, self.kind = definition, field, kind
        self.verdict, self.sentence = verdict, sentence

    @property
    def type(self):
        return self.kind.rstrip("!").split("=", 1)[0].rstrip("!")

    def line(self):
        return "\t".join((self.definition, self.field, self.kind, self.verdict, self.sentence)).rstrip("\t")


def names():
    return sorted(name[:-len(".tsv")] for name in os.listdir(FOLDER) if name.endswith(".tsv"))


def path_of(name):
    return os.path.join(FOLDER, name + ".tsv")


def read(name):
    """(versions of the schemas, rows)."""
    versions, rows = [], []
    with open(path_of(name), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line in (HEAD, TAIL) or not line:
                continue
            if line.startswith("#"):
                versions.append(line.lstrip("# "))
                continue
            cells = line.split("\t")
            rows.append(Row(*(cells + [""] * (5 - len(cells)))))
    return versions, rows


def write(name, versions, rows):
    lines = [HEAD] + [f"# {one}" for one in versions]
    last = None
    for row in rows:
        if row.definition != last:
            lines.append("")
        last = row.definition
        lines.append(row.line())
    with open(path_of(name), "w", encoding="utf-8") as file:
        file.write("\n".join(lines + [TAIL]) + "\n")


def bare(kind):
    """The type without the places of a value: "[Volume]" → "Volume"."""
    return kind.strip("[]{}")


def decided(rows, roots):
    """Definitions whose fields need a verdict of their own: reached from a root by fields that are `within`."""
    by_name, reached, waiting = {}, set(), list(roots)
    for row in rows:
        by_name.setdefault(row.definition, []).append(row)
    while waiting:
        name = waiting.pop()
        if name in reached or name not in by_name:
            continue
        reached.add(name)
        waiting += [bare(row.type) for row in by_name[name] if row.verdict == "within"]
    return reached
