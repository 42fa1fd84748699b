import { expect, test } from "vitest";
import { flat, measuresOf } from "./models";

test("nested fields have the names of both", () => {
  expect(flat({ b: { y: [1, 2], x: "text" }, a: 1, n: null })).toEqual([
    ["a", "1"],
    ["b.x", "text"],
    ["b.y", "[1,2]"],
    ["n", "null"],
  ]);
});

test("measures that are numbers, the well-known first", () => {
  const measures = { zeta: 3, log_loss: 0.3, auc: 0.9, examples: 40, note: "x", alpha: 1 };
  expect(measuresOf({ measures }).map(([name]) => name)).toEqual([
    "auc",
    "log_loss",
    "alpha",
    "zeta",
  ]);
});
