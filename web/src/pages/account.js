import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// The reader: rights, tokens, language.
import { useState } from "preact/hooks";
import { api } from "../lib/api";
import { time } from "../lib/format";
import { language, setLanguage, t } from "../lib/strings";
import { Confirm, Fault, Scroll, useLoad } from "../parts/controls";
export function AccountPage({ me, version }) {
    const tokens = useLoad("tokens", api.tokens);
    const [asking, setAsking] = useState();
    const [problem, setProblem] = useState();
    const revoke = async (token) => {
        try {
            await api.revoke(token.id);
            tokens.reload();
        }
        catch (fault) {
            setProblem(fault);
        }
    };
    return (_jsxs(_Fragment, { children: [_jsx("h1", { children: _jsx("bdi", { children: me.user }) }), _jsxs("dl", { class: "facts", children: [_jsx("dt", { children: t("teams") }), _jsxs("dd", { children: [Object.entries(me.teams)
                                .map(([team, role]) => `${team}: ${role}`)
                                .join(", "), me.administrator ? " · administrator" : ""] }), _jsx("dt", { children: "Shoal" }), _jsx("dd", { children: version }), _jsx("dt", { children: _jsx("label", { for: "language", children: "Language \u00B7 \u8BED\u8A00" }) }), _jsx("dd", { children: _jsxs("select", { id: "language", value: language(), onChange: (event) => setLanguage(event.currentTarget.value === "zh" ? "zh" : "en"), children: [_jsx("option", { value: "en", children: "English" }), _jsx("option", { value: "zh", children: "\u4E2D\u6587" })] }) })] }), _jsx("h2", { children: t("tokens") }), _jsx(Fault, { error: tokens.error ?? problem }), _jsx(Scroll, { label: t("tokens"), children: _jsxs("table", { children: [_jsx("thead", { children: _jsxs("tr", { children: [_jsx("th", { children: t("name") }), _jsx("th", { children: t("made") }), _jsx("th", { children: t("lastUsed") }), _jsx("th", { children: t("expires") }), _jsx("td", {})] }) }), _jsx("tbody", { children: tokens.value?.items.map((token) => (_jsxs("tr", { children: [_jsxs("td", { children: [_jsx("bdi", { children: token.name }), " ", token.id === me.token && _jsxs("span", { class: "dim", children: ["(", t("thisOne"), ")"] })] }), _jsx("td", { children: time(token.created) }), _jsx("td", { children: time(token.last_used) }), _jsx("td", { children: token.expires ? time(token.expires) : t("never") }), _jsx("td", { children: _jsx("button", { type: "button", class: "danger", onClick: () => setAsking(token), children: t("revoke") }) })] }, token.id))) })] }) }), asking && (_jsx(Confirm, { text: t("sureRevoke", { name: asking.name }), action: t("revoke"), onYes: () => void revoke(asking), onClose: () => setAsking(undefined) }))] }));
}
