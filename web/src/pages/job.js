import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// One job: its state and reason first, then tasks, curves, logs, events and files.
import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../lib/api";
import { bytes, duration, number, ranFor, time } from "../lib/format";
import { changed, isOver } from "../lib/job_state";
import { live } from "../lib/live";
import { go } from "../lib/router";
import { t } from "../lib/strings";
import { rows } from "../lib/timeline";
import { Confirm, Dialog, Fault, Link, Scroll, State, Tabs, useLoad, useNow, } from "../parts/controls";
import { Timeline } from "../parts/timeline";
import { Curves } from "./curves";
import { Logs } from "./logs";
// The job and its events, kept up to date by one subscription.
function useJob(id) {
    const [job, setJob] = useState();
    const [events, setEvents] = useState([]);
    const [error, setError] = useState();
    useEffect(() => {
        let over = false;
        let stop = null;
        const read = () => api.job(id).then((next) => {
            if (!over)
                setJob(next);
        }, (problem) => {
            if (!over)
                setError(problem);
        });
        void read();
        stop = live.subscribe({ job: id, events: true, logs: false }, (message) => {
            if (message.event !== "event")
                return;
            const event = message.data;
            setEvents((old) => old.length > 0 && (old.at(-1)?.seq ?? 0) >= event.seq ? old : [...old, event]);
            setJob((old) => {
                if (!old)
                    return old;
                const next = changed(old, event);
                if (!next || isOver(next.state) !== isOver(old.state))
                    void read();
                return next ?? old;
            });
        });
        return () => {
            over = true;
            stop?.();
        };
    }, [id]);
    return { job, events, error };
}
export function JobPage({ id, tab, place }) {
    const { job, events, error } = useJob(id);
    const [problem, setProblem] = useState();
    const [asking, setAsking] = useState();
    const now = useNow(1000);
    if (error)
        return _jsx(Fault, { error: error });
    if (!job)
        return _jsx("p", { class: "dim", children: t("loading") });
    const over = isOver(job.state);
    const act = async (action) => {
        setProblem(undefined);
        try {
            if (action === "remove") {
                await api.remove(id);
                go("/jobs");
            }
            else {
                await api.act(id, action);
            }
        }
        catch (fault) {
            setProblem(fault);
        }
    };
    const here = `/jobs/${encodeURIComponent(id)}`;
    return (_jsxs(_Fragment, { children: [_jsxs("div", { class: "bar", children: [_jsx("h1", { children: _jsx("bdi", { children: job.id }) }), _jsx(State, { state: job.state }), _jsx("span", { class: "dim", children: ranFor(job, now) }), _jsx("span", { style: { flex: "1" } }), !over && job.state !== "suspended" && (_jsx("button", { type: "button", onClick: () => void act("suspend"), children: t("suspend") })), job.state === "suspended" && (_jsx("button", { type: "button", onClick: () => void act("resume"), children: t("resume") })), !over && (_jsx("button", { type: "button", class: "danger", onClick: () => setAsking("stop"), children: t("stop") })), over && (_jsx("button", { type: "button", class: "danger", onClick: () => setAsking("remove"), children: t("remove") }))] }), _jsx(Fault, { error: problem }), job.reason && _jsx("p", { class: job.state === "failed" ? "error" : "", children: job.reason }), _jsx(Tabs, { current: tab, onChoose: (name) => go(name === "overview" ? here : `${here}/${name}`), tabs: [
                    ["overview", t("overview")],
                    ["curves", t("curves")],
                    ["logs", t("logs")],
                    ["events", t("events")],
                    ["files", t("files")],
                    ["file", t("description")],
                ] }), _jsxs("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${tab}`, children: [tab === "overview" && _jsx(Overview, { job: job, events: events, now: now }), tab === "curves" && _jsx(Curves, { job: id, over: over, place: place }), tab === "logs" && _jsx(Logs, { job: id, over: over, place: place }), tab === "events" && _jsx(Events, { events: events }), tab === "files" && _jsx(Files, { job: id }), tab === "file" && _jsx("pre", { class: "file", children: JSON.stringify(job.job ?? {}, null, 2) })] }), asking && (_jsx(Confirm, { text: t(asking === "remove" ? "sureRemove" : "sureStop", { name: job.id }), action: t(asking), onYes: () => void act(asking), onClose: () => setAsking(undefined) }))] }));
}
function Overview({ job, events, now }) {
    const bars = useMemo(() => rows(events), [events]);
    const waits = job.state === "pending";
    const why = useLoad(`${job.id} ${waits} ${job.last_seq}`, () => waits ? api.why(job.id) : Promise.resolve(undefined));
    const result = job.result;
    return (_jsxs(_Fragment, { children: [why.value?.reason && (_jsxs("section", { children: [_jsx("h2", { children: t("why") }), _jsx("p", { children: why.value.reason }), why.value.changes.length > 0 && (_jsxs(_Fragment, { children: [_jsx("p", { children: t("changes") }), _jsx("ul", { children: why.value.changes.map((change) => (_jsx("li", { children: change }, change))) })] })), why.value.forecast && (_jsxs("p", { children: [t("forecast"), ": ", why.value.forecast] }))] })), _jsxs("dl", { class: "facts", children: [_jsx("dt", { children: t("team") }), _jsx("dd", { children: _jsx("bdi", { children: job.team }) }), _jsx("dt", { children: t("user") }), _jsx("dd", { children: _jsx("bdi", { children: job.user }) }), _jsx("dt", { children: t("engine") }), _jsxs("dd", { children: [job.engine, job.job ? `, ${job.job.framework}` : ""] }), _jsx("dt", { children: t("queue") }), _jsx("dd", { children: job.job?.queue ?? "" }), _jsx("dt", { children: t("submitted") }), _jsx("dd", { children: time(job.submitted) }), job.started && (_jsxs(_Fragment, { children: [_jsx("dt", { children: t("started") }), _jsx("dd", { children: time(job.started) })] })), job.ended && (_jsxs(_Fragment, { children: [_jsx("dt", { children: t("ended") }), _jsx("dd", { children: time(job.ended) })] })), (job.job?.roles ?? []).map((role) => (_jsxs(_Fragment, { children: [_jsx("dt", { children: role.name }, role.name), _jsxs("dd", { children: [role.replicas, " \u00D7", role.cpu !== "0" ? ` ${role.cpu} CPU` : "", role.memory_bytes ? ` ${bytes(role.memory_bytes)}` : "", role.gpu ? ` ${role.gpu} GPU` : "", " ", _jsx("code", { children: role.command.join(" ") })] })] })))] }), result && Object.keys(result).length > 0 && (_jsxs(_Fragment, { children: [_jsx("h2", { children: t("result") }), _jsx("dl", { class: "facts", children: Object.entries(result).map(([name, value]) => (_jsxs(_Fragment, { children: [_jsx("dt", { children: name }, name), _jsx("dd", { children: typeof value === "number" ? number(value) : String(value) })] }))) })] })), !isOver(job.state) &&
                (job.job?.roles ?? [])
                    .filter((role) => role.max !== undefined && role.max !== role.min)
                    .map((role) => _jsx(Scale, { job: job.id, role: role }, role.name)), _jsx("h2", { children: t("tasks") }), _jsx(Timeline, { rows: bars, now: job.ended ? Date.parse(job.ended) : now }), _jsx("ul", { class: "visually-hidden", children: bars.map((row) => {
                    const last = row.spans.at(-1);
                    return (_jsx("li", { children: `${row.task}: ${last?.state ?? ""} ${last?.detail ?? ""}, ${duration((last?.to || now) - (row.spans[0]?.from ?? now))}` }, row.task));
                }) })] }));
}
// The number of tasks of an elastic role.
function Scale({ job, role }) {
    const [replicas, setReplicas] = useState(role.replicas);
    const [problem, setProblem] = useState();
    const send = async (event) => {
        event.preventDefault();
        setProblem(undefined);
        try {
            await api.act(job, "scale", { role: role.name, replicas });
        }
        catch (fault) {
            setProblem(fault);
        }
    };
    return (_jsxs("form", { class: "bar", onSubmit: (event) => void send(event), children: [_jsxs("label", { children: [t("replicas", { role: role.name }), " ", _jsx("input", { type: "number", min: role.min ?? 0, max: role.max, value: replicas, onInput: (event) => setReplicas(event.currentTarget.valueAsNumber) })] }), _jsx("button", { type: "submit", children: t("scale") }), _jsx(Fault, { error: problem })] }));
}
function Events({ events }) {
    return (_jsx(Scroll, { label: t("events"), children: _jsxs("table", { children: [_jsx("thead", { children: _jsxs("tr", { children: [_jsx("th", { children: "#" }), _jsx("th", { children: t("time") }), _jsx("th", { children: t("kind") }), _jsx("th", { children: t("reason") })] }) }), _jsx("tbody", { children: events.map((event) => (_jsxs("tr", { children: [_jsx("td", { class: "number", children: event.seq }), _jsx("td", { children: time(event.time) }), _jsx("td", { children: event.type }), _jsx("td", { children: textOf(event) })] }, event.seq))) })] }) }));
}
function textOf(event) {
    const body = event.body ?? {};
    if (event.type === "task") {
        const end = body.end;
        const detail = end
            ? end.detail || (end.signal ? `signal ${end.signal}` : `exit code ${end.exit_code}`)
            : "";
        return `${body.role}-${body.index} ${body.state} ${detail}`.trim();
    }
    return String(body.reason ?? body.text ?? "");
}
// Programs' files are shown as text only, never as pages.
const PREVIEW = 20_000;
function Files({ job }) {
    const files = useLoad(job, () => api.outputs(job));
    const [preview, setPreview] = useState();
    const [problem, setProblem] = useState();
    const read = async (file) => {
        try {
            setProblem(undefined);
            const data = await api.readOutput(job, file);
            return new Blob([data]);
        }
        catch (fault) {
            setProblem(fault);
            return undefined;
        }
    };
    const show = async (file) => {
        const data = await read(file);
        if (data)
            setPreview({ name: file.path, text: await data.slice(0, PREVIEW).text() });
    };
    const download = async (file) => {
        const data = await read(file);
        if (!data)
            return;
        const link = document.createElement("a");
        link.href = URL.createObjectURL(data);
        link.download = file.path.split("/").at(-1) ?? "output";
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    };
    const declared = Object.entries(files.value?.declared ?? {});
    return (_jsxs(_Fragment, { children: [_jsx(Fault, { error: files.error ?? problem }), declared.length > 0 && (_jsxs(_Fragment, { children: [_jsx("h2", { children: t("declared") }), _jsx("dl", { class: "facts", children: declared.map(([name, place]) => (_jsxs(_Fragment, { children: [_jsx("dt", { children: name }, name), _jsx("dd", { children: place })] }))) })] })), files.value?.items.length === 0 && _jsx("p", { class: "dim", children: t("noFiles") }), (files.value?.items.length ?? 0) > 0 && (_jsx(Scroll, { label: t("files"), children: _jsxs("table", { children: [_jsx("thead", { children: _jsxs("tr", { children: [_jsx("th", { children: t("task") }), _jsx("th", { children: t("file") }), _jsx("th", { class: "number", children: t("size") }), _jsx("td", {})] }) }), _jsx("tbody", { children: files.value?.items.map((file) => (_jsxs("tr", { children: [_jsxs("td", { children: [file.task, ".", file.attempt] }), _jsx("td", { children: _jsx("bdi", { children: file.path }) }), _jsx("td", { class: "number", children: bytes(file.bytes) }), _jsxs("td", { children: [_jsx("button", { type: "button", onClick: () => void show(file), children: t("preview") }), " ", _jsx("button", { type: "button", onClick: () => void download(file), children: t("download") })] })] }, `${file.task}.${file.attempt}/${file.path}`))) })] }) })), preview && (_jsxs(Dialog, { label: t("previewOf", { name: preview.name }), onClose: () => setPreview(undefined), children: [_jsx("h2", { children: _jsx("bdi", { children: preview.name }) }), _jsx("pre", { class: "file", children: preview.text }), _jsx("button", { type: "button", onClick: () => setPreview(undefined), children: t("close") })] }))] }));
}
export function NotFound() {
    return (_jsxs("p", { children: [t("notFound"), " ", _jsx(Link, { href: "/jobs", children: t("jobs") })] }));
}
