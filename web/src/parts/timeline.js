import { jsx as _jsx, jsxs as _jsxs } from "preact/jsx-runtime";
// The tasks of a job over time, one bar a task.
import { duration } from "../lib/format";
import { t } from "../lib/strings";
import { Scroll } from "./controls";
const ROW = 20;
const LABEL = 110;
const WIDTH = 900;
export function Timeline({ rows, now }) {
    if (rows.length === 0)
        return null;
    const from = Math.min(...rows.map((row) => row.spans[0]?.from ?? now));
    const to = Math.max(...rows.map((row) => row.spans.at(-1)?.to || now), from + 1);
    const x = (at) => LABEL + ((at - from) / (to - from)) * (WIDTH - LABEL - 10);
    const height = rows.length * ROW + 24;
    const ticks = [0, 0.25, 0.5, 0.75, 1];
    return (_jsx(Scroll, { label: t("tasks"), children: _jsxs("svg", { class: "timeline", viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height: height, role: "img", children: [_jsx("title", { children: t("tasks") }), ticks.map((part) => (_jsxs("g", { children: [_jsx("line", { class: "grid", x1: x(from + part * (to - from)), x2: x(from + part * (to - from)), y1: "0", y2: height - 18 }), _jsx("text", { x: x(from + part * (to - from)), y: height - 5, "text-anchor": part === 1 ? "end" : "middle", children: duration(part * (to - from)) })] }, part))), rows.map((row, index) => (_jsxs("g", { children: [_jsx("text", { x: "0", y: index * ROW + 14, children: row.task }), row.spans.map((span) => (_jsx("rect", { class: span.state, x: x(span.from), y: index * ROW + 3, height: ROW - 6, width: Math.max(3, x(span.to || now) - x(span.from)), children: _jsx("title", { children: `${row.task}, ${t("attempt")} ${span.attempt}: ${span.state}${span.detail ? `, ${span.detail}` : ""}, ${duration((span.to || now) - span.from)}` }) }, `${span.from}${span.state}`)))] }, row.task)))] }) }));
}
