// Numbers, sizes and times for people.
import { language } from "./strings";
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
export function bytes(count) {
    let value = count;
    let unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        ++unit;
    }
    return `${unit === 0 ? value : value.toPrecision(3)} ${UNITS[unit]}`;
}
// Three or four digits with k, M, G.
export function number(value) {
    if (!Number.isFinite(value))
        return String(value);
    const size = Math.abs(value);
    if (size >= 1e9)
        return `${(value / 1e9).toPrecision(3)} G`;
    if (size >= 1e6)
        return `${(value / 1e6).toPrecision(3)} M`;
    if (size >= 1e4)
        return `${(value / 1e3).toPrecision(3)} k`;
    if (Number.isInteger(value))
        return String(value);
    if (size >= 1e-3)
        return String(Number(value.toPrecision(4)));
    return value.toExponential(2);
}
export function duration(milliseconds) {
    const seconds = Math.max(0, Math.round(milliseconds / 1000));
    if (milliseconds < 10_000)
        return `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`;
    if (seconds < 60)
        return `${seconds} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60)
        return `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24)
        return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
    return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
// In the zone of the reader.
export function time(text) {
    if (!text)
        return "";
    const date = new Date(text);
    const today = new Date().toDateString() === date.toDateString();
    return today
        ? date.toLocaleTimeString(language(), { hour12: false })
        : date.toLocaleString(language(), { hour12: false, dateStyle: "short", timeStyle: "medium" });
}
export function ranFor(job, now) {
    if (!job.started)
        return "";
    const end = job.ended ? Date.parse(job.ended) : now;
    return duration(end - Date.parse(job.started));
}
