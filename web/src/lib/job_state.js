// States by the events that lead to them, where the name differs.
const STATE_OF = { submitted: "pending" };
const STATES = new Set(["pending", "admitted", "starting", "running", "suspended", "finishing"]);
export function isOver(state) {
    return state === "succeeded" || state === "failed" || state === "cancelled";
}
// Whether every word is in one of its texts.
export function matches(job, words, state, team) {
    if (state && job.state !== state)
        return false;
    if (team && job.team !== team)
        return false;
    const text = `${job.name} ${job.id} ${job.user} ${job.reason} ${job.engine}`.toLowerCase();
    return words.every((word) => text.includes(word));
}
// What an event of the log changes of a job; undefined: the job has to be read again.
export function changed(job, event) {
    if (event.seq <= job.last_seq)
        return job;
    const next = { ...job, last_seq: event.seq };
    const state = STATE_OF[event.type] ?? event.type;
    if (event.type === "task")
        return next;
    if (event.type === "ended") {
        const body = event.body;
        return { ...next, state: body?.state ?? "", reason: body?.reason ?? "", ended: event.time };
    }
    if (!STATES.has(state))
        return undefined;
    if (state === "running" && !next.started)
        next.started = event.time;
    return { ...next, state };
}
