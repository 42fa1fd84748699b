"""Writes the tables of fields in docs/import.md, between the two lines that mark them, from src/import/fields.

    docs.py            writes them
    docs.py --check    ends with 1 and says so if they are not as the tables have it"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import table  # noqa: E402

DOCS = os.path.join("docs", "import.md")
BEGIN = "<!-- Made by tools/foreign_fields/docs.py of src/import/fields; change it there. -->"
END = "<!-- End of what is made. -->"
TITLES = {"kubernetes": "Pods and plain Jobs of Kubernetes", "kubeflow": "Kubeflow", "volcano": "Volcano",
          "jobset": "JobSet", "trainer": "TrainJob of Kubeflow Trainer", "ray": "RayJob of KubeRay",
          "spark": "SparkApplication of the Spark operator", "marathon": "Marathon", "metronome": "Jobs of Metronome",
          "slurm": "Options in batch scripts of Slurm"}


def shown(row):
    verdict, _, engine = row.verdict.partition("@")
    engine, _, elsewhere = engine.partition("+")
    text = f"{verdict} by {engine}, else {'mentioned' if elsewhere.endswith('mentioned') else 'told'}" if engine else verdict
    return text, row.sentence.replace("|", "\\|")


def section(name):
    versions, rows = table.read(name)
    lines = [f"### {TITLES[name]}", "", "Of " + "; ".join(versions) + ".", "", "| field | | |", "| --- | --- | --- |"]
    for row in rows:
        if row.verdict not in ("-", "within"):
            lines.append(f"| `{row.definition}.{row.field}` | " + " | ".join(shown(row)) + " |")
    return lines


def made():
    lines = [BEGIN, ""]
    for name in TITLES:
        lines += section(name) + [""]
    return "\n".join(lines + [END])


def split(text):
    """What stands before and behind the made part; None where it has no place."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        return None
    return text[:begin], text[end + len(END):]


def stale(root):
    """What is wrong with the tables or their place in the docs, as sentences."""
    wrong = []
    for name in table.names():
        for row in table.read(name)[1]:
            if row.verdict == "undecided":
                wrong.append(f"{name}.tsv: {row.definition}.{row.field} is undecided; say what becomes of it")
            elif row.verdict.split("@")[0] not in table.VERDICTS:
                wrong.append(f"{name}.tsv: {row.definition}.{row.field} has the unknown verdict {row.verdict}")
            elif row.verdict in ("told", "mentioned") and "; " not in row.sentence:
                wrong.append(f"{name}.tsv: {row.definition}.{row.field} has no sentence MEANT; INSTEAD")
    with open(os.path.join(root, DOCS), encoding="utf-8") as file:
        text = file.read()
    parts = split(text)
    if parts is None or parts[0] + made() + parts[1] != text:
        wrong.append(f"{DOCS} is not as the tables have it; python3 tools/foreign_fields/docs.py writes it")
    return wrong


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    if "--check" in sys.argv[1:]:
        wrong = stale(root)
        print("\n".join(wrong))
        return 1 if wrong else 0
    path = os.path.join(root, DOCS)
    with open(path, encoding="utf-8") as file:
        before, behind = split(file.read())
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + made() + behind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
