import { jsx as _jsx, jsxs as _jsxs } from "preact/jsx-runtime";
// A curve or several over time, drawn by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number } from "../lib/format";
import { t } from "../lib/strings";
import { joined, tick } from "./chart_data";
const COLOURS = [
    "#0a7ea4",
    "#d1582a",
    "#3d8b37",
    "#a1459e",
    "#b8860b",
    "#4a63c9",
    "#c23b5e",
    "#2f8f83",
];
export function Chart(properties) {
    const { title, curves, log, relative } = properties;
    const box = useRef(null);
    const plot = useRef(null);
    const names = curves.map((curve) => curve.label).join("\n");
    useEffect(() => {
        const element = box.current;
        if (!element)
            return;
        const style = getComputedStyle(element);
        const text = style.getPropertyValue("color");
        const axis = {
            stroke: text,
            grid: { stroke: "#8884", width: 1 },
            ticks: { stroke: "#8884", width: 1 },
        };
        plot.current = new uPlot({
            width: element.clientWidth || 400,
            height: 220,
            scales: { x: { time: !relative }, y: { distr: log ? 3 : 1 } },
            axes: [
                relative
                    ? axis
                    : {
                        ...axis,
                        values: (_, ticks, _axis, _space, distance) => ticks.map((v) => tick(v, distance)),
                    },
                { ...axis, size: 62, values: (_, ticks) => ticks.map((v) => number(v ?? 0)) },
            ],
            series: [
                relative
                    ? { label: "s", value: (_, v) => (v === null ? "" : v.toFixed(1)) }
                    : { label: t("time"), value: (_, v) => (v === null ? "" : tick(v, 1)) },
                ...curves.map((curve, index) => ({
                    label: curve.label,
                    stroke: COLOURS[index % COLOURS.length] ?? "#888",
                    width: 1.5,
                    spanGaps: true,
                    value: (_, v) => (v === null ? "" : number(v)),
                })),
            ],
            legend: { live: true },
            cursor: { drag: { x: true, y: false } },
        }, joined(curves), element);
        const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: 220 }));
        observer.observe(element);
        return () => {
            observer.disconnect();
            plot.current?.destroy();
            plot.current = null;
        };
    }, [names, log, relative]);
    useEffect(() => {
        plot.current?.setData(joined(curves));
    }, [curves]);
    const last = curves[0]?.values.at(-1);
    return (_jsxs("section", { class: "chart", "aria-label": `${title}: ${last == null ? "" : number(last)}`, children: [_jsx("h2", { children: title }), _jsx("div", { ref: box })] }));
}
