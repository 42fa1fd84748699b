"""Floating-point operations of skip-gram with negative sampling for one word of a text.

Computed from the text: the number of words that survive the subsampling of frequent words (word2vec.c's formula), and the number of
contexts in their windows. Each context is trained against 1 + negative rows, with a dot product and two row updates each:
6 × dim operations. Programs that merge duplicate contexts need slightly fewer, so that fractions of the peak computed from
this number are slightly too high; on real text it is under one percent for words kept at these settings.
"""
import collections
import math
import random


def per_word(path, window, negative, sample, min_count, dim, sampled_lines=20_000):
    """Operations per word of the file, counted as the programs count words (those in the vocabulary)."""
    counts, lines = collections.Counter(), []
    rng = random.Random(1)
    with open(path, encoding="utf-8", errors="replace") as f:
        for number, line in enumerate(f):
            words = line.split()
            counts.update(words)
            if len(lines) < sampled_lines:
                lines.append(words)
            elif rng.random() < sampled_lines / (number + 1):
                lines[rng.randrange(sampled_lines)] = words
    known = {w: c for w, c in counts.items() if c >= min_count}
    total = sum(known.values())
    keep = {w: min(1.0, (math.sqrt(c / (sample * total)) + 1) * sample * total / c) if sample > 0 else 1.0
            for w, c in known.items()}
    seen = contexts = 0
    for words in lines:
        inside = [w for w in words if w in known]
        seen += len(inside)
        kept = [w for w in inside if rng.random() < keep[w]]
        for start in range(0, len(kept), 1000):
            contexts += _contexts(min(1000, len(kept) - start), window)
    return contexts / max(1, seen) * (1 + negative) * 6 * dim


def _contexts(length, window):
    """Expected contexts of all windows in a sentence of `length` words; each window is 1 to `window` wide on both sides."""
    total = 0.0
    for reach in range(1, window + 1):
        # Over all positions, min(reach, words to the left) summed, and the same to the right.
        inside = max(0, length - reach) * reach + sum(range(min(reach, length)))
        total += 2 * inside
    return total / window
