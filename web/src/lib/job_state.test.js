import { expect, test } from "vitest";
import { changed, isOver, matches } from "./job_state";
const job = {
    id: "words-1a2b3c",
    name: "words",
    state: "running",
    reason: "",
    engine: "local",
    team: "vision",
    user: "ann",
    submitted: "2026-01-01T00:00:00Z",
    last_seq: 5,
};
const event = (seq, type, body = {}) => ({
    job: job.id,
    seq,
    time: "2026-01-01T00:00:09Z",
    type,
    body,
});
test("all words must be found, in any field", () => {
    expect(matches(job, ["words", "ann"], "", "")).toBe(true);
    expect(matches(job, ["words", "bob"], "", "")).toBe(false);
    expect(matches(job, [], "failed", "")).toBe(false);
    expect(matches(job, [], "running", "vision")).toBe(true);
});
test("events change the state; what is known already changes nothing", () => {
    expect(changed(job, event(5, "ended", { state: "failed" }))).toBe(job);
    expect(changed(job, event(6, "suspended"))?.state).toBe("suspended");
    const ended = changed(job, event(6, "ended", { state: "failed", reason: "disk full" }));
    expect(ended).toMatchObject({ state: "failed", reason: "disk full", last_seq: 6 });
    expect(isOver(ended?.state ?? "")).toBe(true);
    expect(changed(job, event(6, "task"))?.state).toBe("running");
});
test("an event that the page does not know asks for the job again", () => {
    expect(changed(job, event(6, "of a later version"))).toBeUndefined();
});
