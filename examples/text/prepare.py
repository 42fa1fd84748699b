#!/usr/bin/env python3
"""Makes the demo's corpus from the output of Debian's `bible` command: lower-case words, one chapter a line.

    bible -f -l0 gen1:1-rev22:21 | prepare.py | zstd --ultra -22 -o kjv.txt.zst
"""
import re
import sys


def chapters(lines):
    """Yields the words of one chapter after the other."""
    chapter, words = None, []
    for line in lines:
        place, _, text = line.partition(" ")
        match = re.fullmatch(r"(.+?)(\d+):\d+", place)
        if not match:
            raise SystemExit(f"prepare.py: no verse: {line!r}")
        if match.groups() != chapter and words:
            yield words
            words = []
        chapter = match.groups()
        # An apostrophe inside a word stays ("lord's"), hyphens join names ("abel-meholah").
        words += re.findall(r"[a-z]+(?:['-][a-z]+)*", text.lower())
    if words:
        yield words


if __name__ == "__main__":
    for chapter_words in chapters(sys.stdin):
        print(" ".join(chapter_words))
