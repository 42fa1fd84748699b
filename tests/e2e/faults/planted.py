"""A small corpus with a structure that a good model must find, and the measure of how well it did.

Words come in groups; a sentence draws from one group, among words that everybody uses. In a good model the nearest
neighbour of a group's word is of its own group.
"""
import random

GROUPS, GROUP_SIZE, FILLERS = 24, 8, 40


def write_corpus(path, words, seed=1):
    """Writes about `words` words in lines of 12; the same bytes for the same arguments. How many there are."""
    rng = random.Random(seed)
    groups = [[f"g{g}w{i}" for i in range(GROUP_SIZE)] for g in range(GROUPS)]
    fillers = [f"f{i}" for i in range(FILLERS)]
    with open(path, "w", encoding="ascii") as f:
        for _ in range(words // 12):
            group = groups[rng.randrange(GROUPS)]
            line = rng.choices(group, k=8) + rng.choices(fillers, k=4)
            rng.shuffle(line)
            f.write(" ".join(line) + "\n")
    return words // 12 * 12


def purity(vectors):
    """Share of the groups' words whose nearest neighbour (cosine, among those words) is of their own group; 0 when a
    vector is not finite or a word is missing."""
    names = [f"g{g}w{i}" for g in range(GROUPS) for i in range(GROUP_SIZE)]
    if any(name not in vectors for name in names):
        return 0.0
    unit = []
    for name in names:
        v = vectors[name]
        norm = sum(x * x for x in v) ** 0.5
        if not 0 < norm < float("inf"):
            return 0.0
        unit.append([x / norm for x in v])
    right = 0
    for i, a in enumerate(unit):
        best = max((j for j in range(len(unit)) if j != i), key=lambda j: sum(map(float.__mul__, a, unit[j])))
        right += best // GROUP_SIZE == i // GROUP_SIZE
    return right / len(unit)
