import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// Queues with their shares and who waits, machines, and what was used.
import { api } from "../lib/api";
import { bytes, number } from "../lib/format";
import { t } from "../lib/strings";
import { Fault, Link, Scroll, useLoad, useNow } from "../parts/controls";
const PERIOD_MS = 5000;
const GIB = 2 ** 30;
function amount(resource, value) {
    return resource === "memory" ? bytes(value) : number(value);
}
function Meter({ used, of, label }) {
    const part = of > 0 ? Math.min(1, used / of) : 0;
    return (_jsx("span", { class: "meter", role: "img", "aria-label": label, children: _jsx("i", { style: { width: `${100 * part}%` } }) }));
}
export function QueuesPage() {
    const turn = Math.floor(useNow(PERIOD_MS) / PERIOD_MS);
    const queues = useLoad("queues", api.queues);
    const again = useLoad(`queues ${turn}`, api.queues);
    const value = again.value ?? queues.value;
    const machines = (value?.machines ?? []).filter((one) => hasAny(one.total) || hasAny(one.used));
    return (_jsxs(_Fragment, { children: [_jsx("h1", { children: t("queues") }), _jsx(Fault, { error: queues.error }), _jsx(Scroll, { label: t("queues"), children: _jsxs("table", { children: [_jsx("thead", { children: _jsxs("tr", { children: [_jsx("th", { children: t("queue") }), _jsx("th", { children: t("mode") }), _jsx("th", { class: "number", children: t("running") }), _jsx("th", { class: "number", children: t("waiting") }), _jsx("th", { children: t("used") })] }) }), _jsx("tbody", { children: value?.items.map((queue) => (_jsxs("tr", { children: [_jsx("td", { style: { paddingInlineStart: `${1.2 * queue.depth}rem` }, children: queue.name }), _jsx("td", { children: queue.mode }), _jsx("td", { class: "number", children: queue.running }), _jsx("td", { class: "number", children: queue.waiting }), _jsx("td", { children: queue.flavors.flatMap((flavor) => flavor.resources.map((one) => {
                                            const text = `${flavor.flavor} ${one.resource}: ${amount(one.resource, one.used)} / ${one.limited || one.nominal > 0 ? amount(one.resource, one.nominal) : "–"}${one.borrowed > 0 ? `, ${t("borrowed")} ${amount(one.resource, one.borrowed)}` : ""}`;
                                            return (_jsxs("div", { children: [_jsx(Meter, { used: one.used, of: one.nominal, label: text }), " ", text] }, flavor.flavor + one.resource));
                                        })) })] }, queue.name))) })] }) }), _jsx("h2", { children: t("waiting") }), _jsx("ul", { children: value?.items.flatMap((queue) => queue.jobs.map((job, index) => (_jsxs("li", { children: [queue.name, ":", " ", job.id ? (_jsx(Link, { href: `/jobs/${encodeURIComponent(job.id)}`, children: job.id })) : (job.team), " ", _jsx("span", { class: "dim", children: job.reason })] }, job.id ?? `${queue.name}${index}`)))) }), _jsx("h2", { children: t("machines") }), _jsx(Scroll, { label: t("machines"), children: _jsx("table", { children: _jsx("tbody", { children: machines.map((machine) => (_jsxs("tr", { children: [_jsx("td", { children: machine.flavor }), _jsx("td", { children: Object.keys({ ...machine.total, ...machine.used }).map((resource) => {
                                        const used = machine.used[resource] ?? 0;
                                        const total = machine.total[resource] ?? 0;
                                        const text = `${resource}: ${amount(resource, used)} / ${total > 0 ? amount(resource, total) : "–"}`;
                                        return (_jsxs("div", { children: [_jsx(Meter, { used: used, of: total, label: text }), " ", text] }, resource));
                                    }) })] }, machine.flavor))) }) }) })] }));
}
function hasAny(amounts) {
    return Object.values(amounts).some((value) => value > 0);
}
export function UsagePage() {
    const usage = useLoad("usage", api.usage);
    const items = [...(usage.value?.items ?? [])].sort((a, b) => b.month.localeCompare(a.month));
    return (_jsxs(_Fragment, { children: [_jsx("h1", { children: t("usage") }), _jsx(Fault, { error: usage.error }), _jsx(Scroll, { label: t("usage"), children: _jsxs("table", { children: [_jsx("thead", { children: _jsxs("tr", { children: [_jsx("th", { children: t("month") }), _jsx("th", { children: t("team") }), _jsx("th", { children: t("user") }), _jsx("th", { children: t("queue") }), _jsx("th", { children: t("engine") }), _jsx("th", { class: "number", children: t("count") }), _jsx("th", { class: "number", children: t("cpuHours") }), _jsx("th", { class: "number", children: t("gpuHours") }), _jsx("th", { class: "number", children: t("gibHours") }), _jsx("th", { class: "number", children: t("failedShare") })] }) }), _jsx("tbody", { children: items.map((one) => (_jsxs("tr", { children: [_jsx("td", { children: one.month }), _jsx("td", { children: _jsx("bdi", { children: one.team }) }), _jsx("td", { children: _jsx("bdi", { children: one.user }) }), _jsx("td", { children: one.queue }), _jsx("td", { children: one.engine }), _jsx("td", { class: "number", children: one.jobs }), _jsx("td", { class: "number", children: number(one.held.cpu_hours) }), _jsx("td", { class: "number", children: number(one.held.gpu_hours) }), _jsx("td", { class: "number", children: number(one.held.memory_byte_hours / GIB) }), _jsx("td", { class: "number", children: number(one.failed.cpu_hours) })] }, `${one.month}${one.team}${one.user}${one.queue}${one.engine}`))) })] }) })] }));
}
