// A curve or several over time, drawn by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number } from "../lib/format";

export interface Curve {
  label: string;
  times: number[]; // seconds
  values: (number | null)[];
}

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

// All curves over one axis of times, as uPlot wants them.
export function joined(curves: Curve[]): uPlot.AlignedData {
  const times = [...new Set(curves.flatMap((curve) => curve.times))].sort((a, b) => a - b);
  const at = new Map(times.map((time, index) => [time, index]));
  const columns = curves.map((curve) => {
    const column: (number | null | undefined)[] = new Array(times.length).fill(undefined);
    curve.times.forEach((time, index) => {
      column[at.get(time) ?? 0] = curve.values[index] ?? null;
    });
    return column;
  });
  return [times, ...columns] as uPlot.AlignedData;
}

// An exponential moving average; `weight` of what was before, 0 to 0.99.
export function smooth(values: (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return values;
  let sum = 0;
  let mass = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return sum / mass;
  });
}

export function Chart(properties: {
  title: string;
  curves: Curve[];
  log: boolean;
  relative: boolean; // times count from the start of each job
  onZoom?: (from: number, to: number) => void;
}) {
  const { title, curves, log, relative } = properties;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const names = curves.map((curve) => curve.label).join("\n");

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const style = getComputedStyle(element);
    const text = style.getPropertyValue("color");
    const axis = {
      stroke: text,
      grid: { stroke: "#8884", width: 1 },
      ticks: { stroke: "#8884", width: 1 },
    };
    plot.current = new uPlot(
      {
        width: element.clientWidth || 400,
        height: 220,
        scales: { x: { time: !relative }, y: { distr: log ? 3 : 1 } },
        axes: [axis, { ...axis, size: 62, values: (_, ticks) => ticks.map((v) => number(v ?? 0)) }],
        series: [
          relative ? { label: "s", value: (_, v) => (v === null ? "" : v.toFixed(1)) } : {},
          ...curves.map((curve, index) => ({
            label: curve.label,
            stroke: COLOURS[index % COLOURS.length] ?? "#888",
            width: 1.5,
            spanGaps: true,
            value: (_: uPlot, v: number | null) => (v === null ? "" : number(v)),
          })),
        ],
        legend: { live: true },
        cursor: { drag: { x: true, y: false } },
      },
      joined(curves),
      element,
    );
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: 220 }),
    );
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
  return (
    <section class="chart" aria-label={`${title}: ${last == null ? "" : number(last)}`}>
      <h2>{title}</h2>
      <div ref={box} />
    </section>
  );
}
