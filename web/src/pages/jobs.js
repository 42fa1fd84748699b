import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// The list of jobs, with search, filters in the address, and actions on several.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api } from "../lib/api";
import { ranFor, time } from "../lib/format";
import { isOver, matches } from "../lib/job_state";
import { jobs } from "../lib/jobs";
import { go, setQuery } from "../lib/router";
import { t } from "../lib/strings";
import { Confirm, Fault, Link, State, useNow } from "../parts/controls";
import { VirtualList } from "../parts/virtual";
const STATES = [
    "pending",
    "admitted",
    "starting",
    "running",
    "suspended",
    "finishing",
    "succeeded",
    "failed",
    "cancelled",
];
const ROW = 36;
export function JobsPage({ place }) {
    const [version, setVersion] = useState(jobs.version);
    useEffect(() => jobs.watch(() => setVersion(jobs.version)), []);
    const now = useNow(1000);
    const search = place.query.get("q") ?? "";
    const state = place.query.get("state") ?? "";
    const team = place.query.get("team") ?? "";
    const [current, setCurrent] = useState(-1);
    const [chosen, setChosen] = useState(new Set());
    const [asking, setAsking] = useState(false);
    const [error, setError] = useState();
    const field = useRef(null);
    const shown = useMemo(() => {
        const words = search.toLowerCase().split(/\s+/).filter(Boolean);
        return jobs.list.filter((job) => matches(job, words, state, team));
    }, [version, search, state, team]);
    const teams = useMemo(() => [...new Set(jobs.list.map((job) => job.team))].sort(), [version]);
    const stoppable = shown.filter((job) => chosen.has(job.id) && !isOver(job.state));
    const toggle = (job) => {
        const next = new Set(chosen);
        if (!next.delete(job.id))
            next.add(job.id);
        setChosen(next);
    };
    useEffect(() => {
        const onKey = (event) => {
            const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
            if (typing || event.ctrlKey || event.metaKey || event.altKey)
                return;
            const job = shown[current];
            if (event.key === "/")
                field.current?.focus();
            else if (event.key === "j")
                setCurrent(Math.min(current + 1, shown.length - 1));
            else if (event.key === "k")
                setCurrent(Math.max(current - 1, 0));
            else if (event.key === "x" && job)
                toggle(job);
            else if (event.key === "Enter" && job && event.target === document.body)
                go(`/jobs/${encodeURIComponent(job.id)}`);
            else
                return;
            event.preventDefault();
        };
        window.addEventListener("keydown", onKey);
        return () => window.removeEventListener("keydown", onKey);
    });
    const stopAll = async () => {
        setError(undefined);
        const results = await Promise.allSettled(stoppable.map((job) => api.act(job.id, "stop")));
        const failed = results.find((result) => result.status === "rejected");
        if (failed)
            setError(failed.reason);
        setChosen(new Set());
    };
    const all = shown.length > 0 && shown.every((job) => chosen.has(job.id));
    return (_jsxs(_Fragment, { children: [_jsxs("div", { class: "bar", children: [_jsx("h1", { children: t("jobs") }), _jsx("input", { ref: field, type: "search", value: search, placeholder: t("searchJobs"), "aria-label": t("searchJobs"), onInput: (event) => setQuery("q", event.currentTarget.value) }), _jsxs("label", { children: [t("state"), " ", _jsxs("select", { value: state, onChange: (event) => setQuery("state", event.currentTarget.value), children: [_jsx("option", { value: "", children: t("all") }), STATES.map((name) => (_jsx("option", { children: name }, name)))] })] }), _jsxs("label", { children: [t("team"), " ", _jsxs("select", { value: team, onChange: (event) => setQuery("team", event.currentTarget.value), children: [_jsx("option", { value: "", children: t("all") }), teams.map((name) => (_jsx("option", { children: name }, name)))] })] }), chosen.size > 0 && (_jsxs(_Fragment, { children: [_jsx("span", { children: t("chosen", { count: chosen.size }) }), _jsx("button", { type: "button", class: "danger", disabled: stoppable.length === 0, onClick: () => setAsking(true), children: t("stopChosen") })] }))] }), _jsx(Fault, { error: error ?? jobs.error }), _jsx("p", { class: "dim", role: "status", children: jobs.loading && jobs.list.length > 0
                    ? t("loadingMore")
                    : jobs.loading
                        ? t("loading")
                        : shown.length === 0
                            ? t(jobs.list.length === 0 ? "firstJob" : "noJobs")
                            : t("ofJobs", { shown: shown.length, all: jobs.list.length }) }), _jsx(VirtualList, { label: t("jobs"), class: "jobs", style: { height: "calc(100vh - 11.5rem)", minHeight: "12rem" }, count: shown.length, height: ROW, show: current, head: _jsxs("div", { class: "head dim", role: "row", children: [_jsx("span", { role: "columnheader", children: _jsx("input", { type: "checkbox", "aria-label": t("chooseAll"), checked: all, onChange: () => setChosen(new Set(all ? [] : shown.map((job) => job.id))) }) }), _jsx("span", { role: "columnheader", children: t("name") }), _jsx("span", { role: "columnheader", children: t("state") }), _jsx("span", { role: "columnheader", children: t("engine") }), _jsx("span", { role: "columnheader", children: t("team") }), _jsx("span", { role: "columnheader", children: t("user") }), _jsx("span", { role: "columnheader", children: t("submitted") }), _jsx("span", { role: "columnheader", children: t("ran") }), _jsx("span", { role: "columnheader", children: t("reason") })] }), row: (index, top) => {
                    const job = shown[index];
                    return (_jsxs("div", { class: index === current ? "row current" : "row", style: { transform: `translateY(${top}px)` }, role: "row", "aria-rowindex": index + 1, children: [_jsx("span", { role: "cell", children: _jsx("input", { type: "checkbox", "aria-label": t("choose", { name: job.id }), checked: chosen.has(job.id), onChange: () => toggle(job) }) }), _jsx("span", { role: "cell", children: _jsx(Link, { href: `/jobs/${encodeURIComponent(job.id)}`, children: _jsx("bdi", { children: job.id }) }) }), _jsx("span", { role: "cell", children: _jsx(State, { state: job.state }) }), _jsx("span", { role: "cell", children: job.engine }), _jsx("span", { role: "cell", children: _jsx("bdi", { children: job.team }) }), _jsx("span", { role: "cell", children: _jsx("bdi", { children: job.user }) }), _jsx("span", { role: "cell", children: time(job.submitted) }), _jsx("span", { role: "cell", children: ranFor(job, now) }), _jsx("span", { role: "cell", class: "dim", title: job.reason, children: job.reason })] }, job.id));
                } }), asking && (_jsx(Confirm, { text: t("sureStop", { name: t("chosen", { count: stoppable.length }) }), action: t("stop"), onYes: () => void stopAll(), onClose: () => setAsking(false) }))] }));
}
