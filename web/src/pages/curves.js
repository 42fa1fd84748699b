import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// The curves of a job, live, and of another beside it.
import { useEffect, useState } from "preact/hooks";
import { api } from "../lib/api";
import { groups, taskOf } from "../lib/curves";
import { jobs } from "../lib/jobs";
import { setQuery } from "../lib/router";
import { t } from "../lib/strings";
import { Chart } from "../parts/chart";
import { smooth } from "../parts/chart_data";
import { Fault, useLoad } from "../parts/controls";
const POINTS = 600;
const PERIOD_MS = 2000;
async function load(job) {
    const { items } = await api.series(job);
    const shown = groups(items);
    const names = shown.flatMap((group) => group.series.map((one) => one.name));
    const points = await Promise.all(names.map((name) => api.points(job, name, { points: POINTS })));
    return { job, groups: shown, points: new Map(points.map((one) => [one.name, one])) };
}
function curvesOf(loaded, name, weight, relative) {
    return loaded.flatMap(({ job, groups: all, points }) => {
        const group = all.find((one) => one.name === name);
        const every = [...points.values()].flatMap((one) => one.time_ms.slice(0, 1));
        const zero = relative ? Math.min(...every) : 0;
        return (group?.series ?? []).flatMap((one) => {
            const series = points.get(one.name);
            if (!series)
                return [];
            return {
                label: loaded.length > 1 ? `${job} ${taskOf(one.name)}` : taskOf(one.name) || name,
                times: series.time_ms.map((time) => (time - zero) / 1000),
                values: smooth(series.mean, weight),
            };
        });
    });
}
export function Curves({ job, over, place }) {
    const other = place.query.get("with") ?? "";
    const log = place.query.get("log") === "1";
    const weight = Number(place.query.get("smooth") ?? 0) || 0;
    const key = `${job} ${other}`;
    const [value, setValue] = useState();
    const state = useLoad(key, () => Promise.all([job, other].filter(Boolean).map(load)));
    useEffect(() => {
        if (state.value)
            setValue(state.value);
    }, [state.value]);
    useEffect(() => {
        if (over)
            return;
        const timer = setInterval(state.reload, PERIOD_MS);
        return () => clearInterval(timer);
    }, [over, key]);
    const names = [...new Set((value ?? []).flatMap((one) => one.groups.map((group) => group.name)))];
    return (_jsxs(_Fragment, { children: [_jsxs("div", { class: "bar", children: [_jsxs("label", { children: [t("smoothing"), " ", _jsx("input", { type: "range", min: "0", max: "0.98", step: "0.02", value: weight, onInput: (event) => setQuery("smooth", event.currentTarget.value === "0" ? "" : event.currentTarget.value) })] }), _jsxs("label", { children: [_jsx("input", { type: "checkbox", checked: log, onChange: () => setQuery("log", log ? "" : "1") }), " ", t("logScale")] }), _jsxs("label", { children: [t("compare"), " ", _jsx("input", { list: "other-jobs", value: other, onChange: (event) => setQuery("with", event.currentTarget.value.trim()) })] }), _jsx("datalist", { id: "other-jobs", children: jobs.list
                            .filter((one) => one.id !== job)
                            .slice(0, 200)
                            .map((one) => (_jsx("option", { value: one.id }, one.id))) })] }), _jsx(Fault, { error: state.error }), value && names.length === 0 && _jsx("p", { class: "dim", children: t("noSeries") }), !value && !state.error && _jsx("p", { class: "dim", children: t("loading") }), _jsx("div", { class: "charts", children: names.map((name) => (_jsx(Chart, { title: name, curves: curvesOf(value ?? [], name, weight, other !== ""), log: log, relative: other !== "" }, name))) })] }));
}
