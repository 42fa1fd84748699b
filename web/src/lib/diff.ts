// The lines in which two texts differ, for the comparison of job files.

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
}

const MOST_CELLS = 4_000_000; // of the table of the longest common subsequence

// Lines of `after`, and those of `before` that it lacks, in order. Texts too long for a table of
// MOST_CELLS are told as removed and added as a whole between their common beginning and end.
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) ++head;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  )
    ++tail;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...now.slice(0, head).map(same),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...now.slice(now.length - tail).map(same),
  ];
}

function middle(old: string[], now: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  if (old.length * now.length > MOST_CELLS) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  // longest[i * width + j]: common lines of old[i…] and now[j…].
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; --i)
    for (let j = now.length - 1; j >= 0; --j)
      longest[i * width + j] =
        old[i] === now[j]
          ? (longest[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(longest[(i + 1) * width + j] ?? 0, longest[i * width + j + 1] ?? 0);
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    const right = longest[i * width + j + 1] ?? 0;
    const down = longest[(i + 1) * width + j] ?? 0;
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ kind: "same", text: now[j] ?? "" });
      ++i;
      ++j;
    } else if (i < old.length && (j === now.length || down >= right)) {
      lines.push(removed(old[i++] ?? ""));
    } else {
      lines.push(added(now[j++] ?? ""));
    }
  }
  return lines;
}

// Only what differs, with `around` lines on both sides; null stands for lines that are left out.
export function shortened(lines: DiffLine[], around = 2): (DiffLine | null)[] {
  const near = lines.map((_, at) =>
    lines.slice(Math.max(0, at - around), at + around + 1).some((one) => one.kind !== "same"),
  );
  const shown: (DiffLine | null)[] = [];
  lines.forEach((line, at) => {
    if (near[at]) shown.push(line);
    else if (shown.at(-1) !== null) shown.push(null);
  });
  return shown;
}
