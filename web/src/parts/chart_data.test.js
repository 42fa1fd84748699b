import { expect, test } from "vitest";
import { joined, smooth, tick } from "./chart_data";
test("curves share one axis of times", () => {
    expect(joined([
        { label: "a", times: [1, 3], values: [10, 30] },
        { label: "b", times: [2, 3], values: [20, null] },
    ])).toEqual([
        [1, 2, 3],
        [10, undefined, 30],
        [undefined, 20, null],
    ]);
});
test("smoothing is without bias at the start, and keeps gaps", () => {
    expect(smooth([4, 4, null, 4], 0.9)).toEqual([4, 4, null, 4].map((v) => (v === null ? v : expect.closeTo(v))));
    expect(smooth([0, 1], 0.5)).toEqual([0, expect.closeTo(2 / 3)]);
    expect(smooth([1, 2], 0)).toEqual([1, 2]);
});
test("ticks are as short as their distance allows", () => {
    const noon = new Date(2026, 10, 27, 12, 5, 9).getTime() / 1000;
    expect(tick(noon, 1)).toBe("12:05:09");
    expect(tick(noon, 60)).toBe("12:05");
    expect(tick(noon, 86_400)).toBe("11-27");
});
