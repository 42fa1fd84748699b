import { jsx as _jsx, jsxs as _jsxs } from "preact/jsx-runtime";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
// Browsers draw no element of more than about 33 million pixels.
const MOST_PIXELS = 8_000_000;
export function VirtualList(properties) {
    const { count, height, row, show, atEnd } = properties;
    const box = useRef(null);
    const [view, setView] = useState({ top: 0, size: 600 });
    const total = count * height;
    // More rows than an element can be high: positions are scaled.
    const pixels = Math.min(total, MOST_PIXELS);
    const scale = pixels > view.size ? (total - view.size) / (pixels - view.size) : 1;
    const look = () => {
        const element = box.current;
        if (!element)
            return;
        setView({ top: element.scrollTop, size: element.clientHeight });
        const end = element.scrollHeight - element.scrollTop - element.clientHeight < height;
        properties.onEnd?.(end);
    };
    useEffect(() => {
        const element = box.current;
        if (!element)
            return;
        const observer = new ResizeObserver(look);
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    useLayoutEffect(() => {
        if (atEnd && box.current)
            box.current.scrollTop = box.current.scrollHeight;
    }, [count, atEnd]);
    useLayoutEffect(() => {
        const element = box.current;
        if (!element || show === undefined || show < 0)
            return;
        const top = show * height;
        const from = element.scrollTop * scale;
        if (top < from)
            element.scrollTop = top / scale;
        else if (top + 2 * height > from + element.clientHeight)
            element.scrollTop = (top + 2 * height - element.clientHeight) / scale;
    }, [show]);
    const from = Math.max(0, Math.floor((view.top * scale) / height) - 5);
    const to = Math.min(count, Math.ceil((view.top * scale + view.size) / height) + 5);
    const rows = [];
    for (let index = from; index < to; ++index)
        rows.push(row(index, index * height - view.top * scale + view.top));
    return (_jsxs("div", { ref: box, class: `rows ${properties.class}`, style: properties.style, onScroll: look, role: properties.role ?? "table", "aria-label": properties.label, "aria-rowcount": properties.role === "log" ? undefined : count, tabIndex: 0, children: [properties.head, _jsx("div", { style: { height: `${pixels}px`, position: "relative" }, role: "presentation", children: rows })] }));
}
