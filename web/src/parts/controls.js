import { jsx as _jsx, jsxs as _jsxs } from "preact/jsx-runtime";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../lib/api";
import { follow } from "../lib/router";
import { t } from "../lib/strings";
export function Link(properties) {
    return (_jsx("a", { href: properties.href, onClick: follow, class: properties.class, "aria-current": properties.current ? "page" : undefined, children: properties.children }));
}
export function State({ state }) {
    return _jsx("span", { class: `state ${state}`, children: state });
}
export function Fault({ error }) {
    if (!error)
        return null;
    const details = error instanceof ApiError ? error.errors : [];
    return (_jsx("div", { class: "error", role: "alert", children: details.length > 0
            ? details.map((one) => (_jsxs("div", { children: [one.line ? `${one.line}:${one.column} ` : "", one.message.startsWith(one.field) ? "" : `${one.field}: `, one.message] }, `${one.field}${one.line}`)))
            : error instanceof Error
                ? error.message
                : String(error) }));
}
// Loads when `key` changes and when `reload` is called. The last value stays while it loads again.
export function useLoad(key, load) {
    const [state, setState] = useState({ key });
    const [turn, setTurn] = useState(0);
    const asked = useRef(0);
    useEffect(() => {
        const mine = ++asked.current;
        load().then((value) => {
            if (mine === asked.current)
                setState({ key, value });
        }, (error) => {
            if (mine === asked.current)
                setState((old) => ({ ...old, key, error }));
        });
        return () => {
            if (mine === asked.current)
                ++asked.current;
        };
    }, [key, turn]);
    const fresh = state.key === key;
    return {
        value: fresh ? state.value : undefined,
        error: fresh ? state.error : undefined,
        reload: () => setTurn((old) => old + 1),
    };
}
// The time now, again every `period` milliseconds.
export function useNow(period) {
    const [now, setNow] = useState(Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), period);
        return () => clearInterval(timer);
    }, [period]);
    return now;
}
// A dialog over the page. The browser keeps the focus in it and closes it with Escape.
export function Dialog(properties) {
    const element = useRef(null);
    useEffect(() => {
        element.current?.showModal();
    }, []);
    return (_jsx("dialog", { ref: element, "aria-label": properties.label, onClose: properties.onClose, children: properties.children }));
}
export function Confirm(properties) {
    return (_jsxs(Dialog, { label: properties.action, onClose: properties.onClose, children: [_jsx("p", { children: properties.text }), _jsxs("div", { class: "bar", children: [_jsx("button", { type: "button", class: "danger", onClick: () => {
                            properties.onYes();
                            properties.onClose();
                        }, children: properties.action }), _jsx("button", { type: "button", onClick: properties.onClose, children: t("cancel") })] })] }));
}
export function Tabs(properties) {
    const { tabs, current, onChoose } = properties;
    const list = useRef(null);
    const move = (event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (step === 0)
            return;
        event.preventDefault();
        const at = tabs.findIndex(([name]) => name === current);
        const next = (at + step + tabs.length) % tabs.length;
        onChoose(tabs[next]?.[0] ?? current);
        list.current?.children[next]?.focus();
    };
    return (_jsx("div", { role: "tablist", ref: list, onKeyDown: move, children: tabs.map(([name, text]) => (_jsx("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": name === current, "aria-controls": "panel", tabIndex: name === current ? 0 : -1, onClick: () => onChoose(name), children: text }, name))) }));
}
// What may be wider than the page: it is scrolled alone, by the keyboard too.
export function Scroll(properties) {
    return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll it
    _jsx("section", { class: "scroll", "aria-label": properties.label, tabIndex: 0, children: properties.children }));
}
