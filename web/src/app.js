import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// The frame of the page: sign-in, navigation, keys, the state of the connection.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, session, whenSignedOut } from "./lib/api";
import { jobs } from "./lib/jobs";
import { live } from "./lib/live";
import { go, usePlace } from "./lib/router";
import { t } from "./lib/strings";
import { AccountPage } from "./pages/account";
import { JobPage, NotFound } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { NewJobPage } from "./pages/new_job";
import { QueuesPage, UsagePage } from "./pages/queues";
import { SignIn } from "./pages/sign_in";
import { Dialog, Link } from "./parts/controls";
import { Palette } from "./parts/palette";
const TABS = new Set(["overview", "curves", "logs", "events", "files", "file"]);
export function App() {
    const [me, setMe] = useState();
    const [checked, setChecked] = useState(!session.token);
    useEffect(() => {
        whenSignedOut(() => setMe(undefined));
        if (!session.token)
            return;
        api
            .me()
            .then(setMe, () => undefined)
            .finally(() => setChecked(true));
    }, []);
    if (!checked)
        return null;
    if (!me)
        return _jsx(SignIn, { onSignedIn: setMe });
    const signOut = () => {
        session.clear();
        live.close();
        jobs.reset();
        setMe(undefined);
    };
    return _jsx(Frame, { me: me, onSignOut: signOut });
}
function Frame({ me, onSignOut }) {
    const place = usePlace();
    const [connection, setConnection] = useState("connecting");
    const [sheet, setSheet] = useState(false);
    const [palette, setPalette] = useState(false);
    const [version, setVersion] = useState("");
    useEffect(() => live.watchState(setConnection), []);
    useEffect(() => {
        api.server().then((server) => setVersion(server.version), () => undefined);
    }, []);
    const pending = useRef("");
    useEffect(() => {
        const onKey = (event) => {
            if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
                event.preventDefault();
                setPalette(true);
                return;
            }
            const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
            if (typing || event.ctrlKey || event.metaKey || event.altKey)
                return;
            const both = pending.current + event.key;
            pending.current = event.key === "g" ? "g" : "";
            if (event.key === "?")
                setSheet(true);
            else if (both === "gj")
                go("/jobs");
            else if (both === "gq")
                go("/queues");
            else if (both === "gu")
                go("/usage");
            else if (both === "n")
                go("/new");
        };
        window.addEventListener("keydown", onKey);
        return () => window.removeEventListener("keydown", onKey);
    }, []);
    const [first = "jobs", second, third = "overview"] = place.path;
    useEffect(() => {
        document.title = second ? `${second} · Shoal` : "Shoal";
    }, [second]);
    const page = first === "jobs" && !second ? (_jsx(JobsPage, { place: place })) : first === "jobs" && second && TABS.has(third) ? (_jsx(JobPage, { id: second, tab: third, place: place }, second)) : first === "new" ? (_jsx(NewJobPage, {})) : first === "queues" ? (_jsx(QueuesPage, {})) : first === "usage" ? (_jsx(UsagePage, {})) : first === "account" ? (_jsx(AccountPage, { me: me, version: version })) : (_jsx(NotFound, {}));
    return (_jsxs(_Fragment, { children: [_jsx("a", { class: "skip", href: "#content", children: t("skip") }), _jsxs("header", { class: "top", children: [_jsx(Link, { href: "/jobs", children: _jsx("img", { src: "/icon.svg", alt: "Shoal", width: "24", height: "24" }) }), _jsxs("nav", { "aria-label": "Shoal", children: [_jsx(Link, { href: "/jobs", current: first === "jobs", children: t("jobs") }), _jsx(Link, { href: "/new", current: first === "new", children: t("newJob") }), _jsx(Link, { href: "/queues", current: first === "queues", children: t("queues") }), _jsx(Link, { href: "/usage", current: first === "usage", children: t("usage") }), _jsx(Link, { href: "/account", current: first === "account", children: _jsx("bdi", { children: me.user }) })] }), _jsxs("button", { type: "button", onClick: () => setPalette(true), children: [t("search"), " ", _jsx("kbd", { children: "Ctrl K" })] }), _jsx("button", { type: "button", "aria-label": t("keys"), onClick: () => setSheet(true), children: "?" }), _jsx("button", { type: "button", onClick: onSignOut, children: t("signOut") })] }), _jsx("div", { role: "status", "aria-live": "polite", children: connection === "lost" && _jsx("div", { class: "notice", children: t("lost") }) }), _jsx("main", { id: "content", tabIndex: -1, children: page }), palette && _jsx(Palette, { onClose: () => setPalette(false) }), sheet && (_jsxs(Dialog, { label: t("keys"), onClose: () => setSheet(false), children: [_jsx("h2", { children: t("keys") }), _jsx("ul", { children: t("keysHelp")
                            .split(" · ")
                            .map((line) => (_jsx("li", { children: line }, line))) }), _jsx("button", { type: "button", onClick: () => setSheet(false), children: t("close") })] }))] }));
}
