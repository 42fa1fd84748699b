import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// The logs of a job's tasks: one, or all merged, as they grow.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { pieces, plain } from "../lib/ansi";
import { api } from "../lib/api";
import { bytesOf, Lines } from "../lib/lines";
import { live } from "../lib/live";
import { setQuery } from "../lib/router";
import { t } from "../lib/strings";
import { Fault, useLoad } from "../parts/controls";
import { VirtualList } from "../parts/virtual";
const PIECE = 4 << 20;
// Of each log where all are shown together.
const TAIL_LINES = 5000;
const ROW = 18;
function logName(log) {
    return `${log.role}-${log.index}.${log.attempt}`;
}
// Reads a whole log in pieces and calls `grew` after each.
async function readAll(job, name, lines, grew, stopped) {
    for (;;) {
        const bytes = await api.readLog(job, name, { offset: lines.offset, limit: PIECE });
        if (stopped() || bytes.length === 0)
            return;
        lines.add(bytes);
        grew();
    }
}
// What is shown changes as logs grow: `version` counts that.
class Feed {
    job;
    chosen;
    grew;
    shown = [];
    version = 0;
    error;
    stopped = false;
    stop = null;
    timer = 0;
    constructor(job, chosen, grew) {
        this.job = job;
        this.chosen = chosen;
        this.grew = grew;
    }
    async start(logs, over) {
        const names = this.chosen ? [this.chosen] : logs.map(logName);
        const positions = [];
        try {
            for (const name of names) {
                const size = logs.find((log) => logName(log) === name)?.bytes ?? 0;
                const lines = new Lines();
                if (this.chosen) {
                    await readAll(this.job, name, lines, () => this.show(name, lines), () => this.stopped);
                }
                else {
                    const tail = await api.readLog(this.job, name, { tail: TAIL_LINES });
                    lines.offset = Math.max(0, size - tail.length);
                    lines.add(tail);
                }
                if (this.stopped)
                    return;
                this.show(name, lines);
                positions.push(`${name}:${lines.offset}`);
            }
        }
        catch (error) {
            this.error = error;
            this.change();
        }
        if (!over && !this.stopped)
            this.follow(positions);
    }
    end() {
        this.stopped = true;
        this.stop?.();
        clearTimeout(this.timer);
    }
    taken = new Map(); // lines of each log that are shown
    show(name, lines) {
        const from = this.taken.get(name) ?? 0;
        for (let i = from; i < lines.lines.length; ++i) {
            this.shown.push({ task: this.chosen ? "" : name, text: lines.lines[i] ?? "" });
        }
        this.taken.set(name, lines.lines.length);
        this.change();
    }
    follow(positions) {
        const logs = new Map();
        const fields = {
            job: this.job,
            logs: true,
            events: false,
            from: positions.join(","),
        };
        this.stop = live.subscribe(fields, (message) => {
            if (message.event !== "log")
                return;
            const data = message.data;
            const name = `${data.role}-${data.index}.${data.attempt}`;
            if (this.chosen && name !== this.chosen)
                return;
            let lines = logs.get(name);
            if (!lines) {
                lines = new Lines();
                logs.set(name, lines);
                this.taken.set(name, 0);
            }
            lines.add(bytesOf(message.data));
            this.show(name, lines);
        });
    }
    // At most once a frame or so, whatever comes.
    change() {
        if (this.timer)
            return;
        this.timer = window.setTimeout(() => {
            this.timer = 0;
            ++this.version;
            this.grew();
        }, 50);
    }
}
export function Logs({ job, over, place }) {
    const chosen = place.query.get("log") ?? "";
    const search = place.query.get("find") ?? "";
    const logs = useLoad(job, () => api.logs(job));
    const [version, setVersion] = useState(0);
    const [atEnd, setAtEnd] = useState(!over);
    const [hit, setHit] = useState(-1);
    const feed = useRef(null);
    const known = logs.value?.items;
    useEffect(() => {
        if (!known)
            return;
        const mine = new Feed(job, chosen, () => setVersion((old) => old + 1));
        feed.current = mine;
        void mine.start(known, over);
        return () => mine.end();
    }, [known, job, chosen]);
    // Logs of tasks that start later are in the list only when it is read again.
    useEffect(() => {
        if (over || (known && known.length > 0))
            return;
        const timer = setInterval(logs.reload, 2000);
        return () => clearInterval(timer);
    }, [over, known]);
    const shown = feed.current?.shown ?? [];
    const hits = useMemo(() => {
        if (!search)
            return [];
        const wanted = search.toLowerCase();
        const found = [];
        shown.forEach((line, index) => {
            if (line.text.toLowerCase().includes(wanted) &&
                plain(line.text).toLowerCase().includes(wanted))
                found.push(index);
        });
        return found;
    }, [version, search, shown]);
    const isHit = useMemo(() => new Set(hits), [hits]);
    const step = (by) => {
        if (hits.length === 0)
            return;
        const at = hits.findIndex((index) => index >= hit);
        const next = (at < 0 ? 0 : by > 0 && hits[at] === hit ? at + by : by < 0 ? at + by : at) + hits.length;
        setAtEnd(false);
        setHit(hits[next % hits.length] ?? -1);
    };
    return (_jsxs(_Fragment, { children: [_jsxs("div", { class: "bar", children: [_jsxs("label", { children: [t("task"), " ", _jsxs("select", { value: chosen, onChange: (event) => setQuery("log", event.currentTarget.value), children: [_jsx("option", { value: "", children: t("allTasks") }), (known ?? []).map((log) => (_jsx("option", { value: logName(log), children: logName(log) }, logName(log))))] })] }), _jsx("input", { type: "search", "aria-label": t("find"), placeholder: t("find"), value: search, onInput: (event) => setQuery("find", event.currentTarget.value), onKeyDown: (event) => {
                            if (event.key === "Enter")
                                step(event.shiftKey ? -1 : 1);
                        } }), search && _jsx("span", { role: "status", children: t("matches", { count: hits.length }) }), !over && (_jsxs("label", { children: [_jsx("input", { type: "checkbox", checked: atEnd, onChange: () => setAtEnd(!atEnd) }), " ", t("follow")] }))] }), _jsx(Fault, { error: logs.error ?? feed.current?.error }), known && shown.length === 0 && _jsx("p", { class: "dim", children: t("noLogs") }), _jsx(VirtualList, { label: t("logs"), role: "log", class: "log", count: shown.length, height: ROW, atEnd: atEnd, show: hit, row: (index, top) => {
                    const line = shown[index];
                    return (_jsxs("div", { class: isHit.has(index) ? "line hit" : "line", style: { transform: `translateY(${top}px)` }, children: [line.task && _jsxs("b", { children: [line.task, " "] }), pieces(line.text).map((piece, number) => (_jsx("span", { class: piece.style, children: piece.text }, number)))] }, index));
                } })] }));
}
