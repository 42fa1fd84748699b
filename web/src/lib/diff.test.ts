import { expect, test } from "vitest";
import { diffLines, shortened } from "./diff";

const text = (lines: ReturnType<typeof diffLines>) =>
  lines.map((one) => ({ same: " ", added: "+", removed: "-" })[one.kind] + one.text);

test("what was taken out comes before what was put in", () => {
  expect(text(diffLines("a\nb\nc", "a\nB\nc"))).toEqual([" a", "-b", "+B", " c"]);
  expect(text(diffLines("", "x"))).toEqual(["-", "+x"]);
  expect(text(diffLines("a\nb", "a\nb"))).toEqual([" a", " b"]);
  expect(text(diffLines("a\nb\nc\nd", "b\nx\nd\ne"))).toEqual(["-a", " b", "-c", "+x", " d", "+e"]);
});

test("a difference applied to the old text is the new one, for random texts", () => {
  let seed = 7;
  const random = (most: number) => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % most;
  };
  for (let round = 0; round < 300; ++round) {
    const make = () => Array.from({ length: random(12) }, () => "abc"[random(3)]).join("\n");
    const before = make();
    const after = make();
    const lines = diffLines(before, after);
    const side = (gone: string) =>
      lines
        .filter((one) => one.kind !== gone)
        .map((one) => one.text)
        .join("\n");
    expect(side("removed")).toBe(after);
    expect(side("added")).toBe(before);
  }
});

test("texts that are too long for the table are replaced as a whole", () => {
  const long = (name: string) => Array.from({ length: 3000 }, (_, i) => `${name}${i}`).join("\n");
  const lines = diffLines(`top\n${long("a")}\nend`, `top\n${long("b")}\nend`);
  expect(lines.length).toBe(6002);
  expect(lines[0]?.kind).toBe("same");
  expect(lines.at(-1)?.kind).toBe("same");
});

test("far lines are left out", () => {
  const before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
  const shown = shortened(diffLines(before, before.replace("5", "five")), 1);
  expect(shown.map((one) => one?.text ?? null)).toEqual([null, "4", "5", "five", "6", null]);
});
