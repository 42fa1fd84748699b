import { jsx as _jsx, jsxs as _jsxs } from "preact/jsx-runtime";
import { useState } from "preact/hooks";
import { api, session } from "../lib/api";
import { t } from "../lib/strings";
import { Fault } from "../parts/controls";
export function SignIn({ onSignedIn }) {
    const [token, setToken] = useState("");
    const [error, setError] = useState();
    const enter = async (event) => {
        event.preventDefault();
        session.set(token.trim());
        try {
            onSignedIn(await api.me());
        }
        catch (problem) {
            session.clear();
            setError(problem);
        }
    };
    return (_jsxs("main", { class: "sign-in", id: "content", children: [_jsxs("h1", { children: [_jsx("img", { src: "/icon.svg", alt: "", width: "28", height: "28" }), " Shoal"] }), _jsxs("form", { onSubmit: (event) => void enter(event), children: [_jsx("label", { for: "token", children: t("token") }), _jsx("input", { id: "token", type: "password", autocomplete: "off", required: true, value: token, onInput: (event) => setToken(event.currentTarget.value) }), _jsx("p", { class: "dim", children: t("tokenHint") }), _jsx(Fault, { error: error }), _jsx("button", { type: "submit", class: "main", children: t("signIn") })] })] }));
}
