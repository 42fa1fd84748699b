"""Rule foreign-fields: every field of a foreign schema has its verdict, and docs/import.md shows it."""
import os
import sys

import files

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "foreign_fields")


def check(root, paths):
    if "tools/foreign_fields/docs.py" not in paths:
        return []
    sys.path.insert(0, FOLDER)
    import docs
    return [files.Finding("foreign-fields", docs.DOCS, 1, sentence) for sentence in docs.stale(root)]
