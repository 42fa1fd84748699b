import { expect, test } from "vitest";
import { rows } from "./timeline";
let seq = 0;
const task = (second, index, state, more = {}) => ({
    job: "j",
    seq: ++seq,
    time: `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`,
    type: "task",
    body: { role: "worker", index, attempt: 0, state, ...more },
});
test("each task has its periods, one after the other", () => {
    const found = rows([
        task(1, 0, "joined"),
        task(2, 0, "running"),
        task(5, 0, "ended", { end: { kind: "exit", exit_code: 0, signal: 0, detail: "" } }),
    ]);
    expect(found).toHaveLength(1);
    const spans = found[0]?.spans ?? [];
    expect(spans.map((span) => span.state)).toEqual(["joined", "running", "ended"]);
    expect(spans[1]).toMatchObject({ from: Date.parse("2026-01-01T00:00:02Z"), detail: "" });
    expect((spans[1]?.to ?? 0) - (spans[1]?.from ?? 0)).toBe(3000);
});
test("a killed attempt is a failure with its cause, and the next one follows", () => {
    const end = { kind: "signal", exit_code: -1, signal: 9, detail: "" };
    const spans = rows([
        task(1, 0, "running"),
        task(2, 0, "ended", { end }),
        task(3, 0, "running", { attempt: 1 }),
    ])[0]?.spans;
    expect(spans?.map((span) => [span.state, span.attempt])).toEqual([
        ["running", 0],
        ["failed", 0],
        ["running", 1],
    ]);
    expect(spans?.[1]?.detail).toBe("signal 9");
    expect(spans?.[2]?.to).toBe(0);
});
test("tasks are in the order of their numbers, and end with the job", () => {
    const found = rows([
        task(1, 10, "running"),
        task(1, 2, "running"),
        { job: "j", seq: ++seq, time: "2026-01-01T00:00:09Z", type: "ended", body: {} },
    ]);
    expect(found.map((row) => row.task)).toEqual(["worker-2", "worker-10"]);
    expect(found[0]?.spans[0]?.to).toBe(Date.parse("2026-01-01T00:00:09Z"));
});
