import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "preact/jsx-runtime";
// A job file written, checked, tried and submitted.
import { useRef, useState } from "preact/hooks";
import { api } from "../lib/api";
import { go } from "../lib/router";
import { t } from "../lib/strings";
import { Fault } from "../parts/controls";
const EXAMPLE = `framework: generic
roles:
  worker:
    replicas: 2
    command: [sh, -c, 'echo "hello from worker $SHOAL_INDEX"; sleep 2']
`;
const DRAFT = "shoal.draft";
export function NewJobPage() {
    const [text, setText] = useState(() => sessionStorage.getItem(DRAFT) ?? EXAMPLE);
    const [error, setError] = useState();
    const [said, setSaid] = useState([]);
    const [busy, setBusy] = useState(false);
    // The same until the text changes, so that a repeated click submits one job.
    const key = useRef(crypto.randomUUID());
    const change = (value) => {
        setText(value);
        sessionStorage.setItem(DRAFT, value);
        key.current = crypto.randomUUID();
        setSaid([]);
        setError(undefined);
    };
    const run = async (call) => {
        setBusy(true);
        setError(undefined);
        setSaid([]);
        try {
            await call();
        }
        catch (problem) {
            setError(problem);
        }
        setBusy(false);
    };
    const check = () => run(async () => {
        const plan = (await api.plan(text));
        const trial = await api.dryRun(text);
        setSaid([
            t("ok", { count: plan.tasks.length }),
            trial.starts
                ? t("startsNow", { flavor: trial.flavor })
                : t("waits", { reason: trial.reason }),
            ...trial.changes,
        ]);
    });
    const submit = () => run(async () => {
        const job = await api.submit(text, key.current);
        sessionStorage.removeItem(DRAFT);
        go(`/jobs/${encodeURIComponent(job.id)}`);
    });
    const drop = async (event) => {
        const file = event.dataTransfer?.files[0];
        if (!file)
            return;
        event.preventDefault();
        change(await file.text());
    };
    return (_jsxs(_Fragment, { children: [_jsx("h1", { children: t("newJob") }), _jsxs("label", { for: "job-text", children: [t("jobText"), " ", _jsx("span", { class: "dim", children: t("drop") })] }), _jsx("textarea", { id: "job-text", class: "code", spellcheck: false, value: text, onInput: (event) => change(event.currentTarget.value), onDrop: (event) => void drop(event) }), _jsxs("div", { class: "bar", children: [_jsx("button", { type: "button", disabled: busy, onClick: () => void check(), children: t("check") }), _jsx("button", { type: "button", class: "main", disabled: busy, onClick: () => void submit(), children: t("submit") })] }), _jsx(Fault, { error: error }), _jsx("div", { role: "status", children: said.map((line) => (_jsx("p", { children: line }, line))) })] }));
}
