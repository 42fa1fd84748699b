import { expect, test } from "vitest";
import { groups, taskOf } from "./curves";
const series = (name) => ({ name, points: 1, first_ms: 0, last_ms: 0 });
test("series of one number make one chart, the loss first", () => {
    const found = groups(["worker-0.zeta", "worker-0.loss", "worker-1.loss", "worker-0.step", "loss"].map(series));
    expect(found.map((group) => [group.name, group.series.length])).toEqual([
        ["loss", 3],
        ["zeta", 1],
    ]);
    expect(taskOf("worker-1.loss")).toBe("worker-1");
    expect(taskOf("loss")).toBe("");
});
