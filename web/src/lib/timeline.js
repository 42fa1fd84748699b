function detailOf(body) {
    const end = body.end;
    if (!end)
        return body.text ?? "";
    if (end.detail)
        return end.detail;
    if (end.signal)
        return `signal ${end.signal}`;
    return `exit code ${end.exit_code ?? "?"}`;
}
function endedWell(body) {
    return body.end?.exit_code === 0 && !body.end.signal && body.end.kind === "exit";
}
export function rows(events) {
    const byTask = new Map();
    for (const event of events) {
        const at = Date.parse(event.time);
        if (event.type === "ended") {
            for (const row of byTask.values())
                close(row, at);
            continue;
        }
        if (event.type !== "task" || !event.body)
            continue;
        const body = event.body;
        const task = `${body.role}-${body.index}`;
        let row = byTask.get(task);
        if (!row) {
            row = { task, spans: [] };
            byTask.set(task, row);
        }
        close(row, at);
        const over = body.state === "ended" || body.state === "lost" || body.state === "failed";
        row.spans.push({
            state: over ? (endedWell(body) ? "ended" : "failed") : (body.state ?? ""),
            from: at,
            to: over ? at : 0,
            attempt: body.attempt ?? 0,
            detail: detailOf(body),
        });
    }
    return [...byTask.values()].sort((a, b) => a.task.localeCompare(b.task, "en", { numeric: true }));
}
function close(row, at) {
    const last = row.spans.at(-1);
    if (last && last.to === 0)
        last.to = at;
}
