// The REST interface of the server (docs/rest.md). Every request carries the token of the session.
// A refusal of the server. `message` is the sentence that a command would print.
export class ApiError extends Error {
    status;
    errors;
    constructor(status, message, errors = []) {
        super(message);
        this.status = status;
        this.errors = errors;
    }
}
// Kept for the tab only: another tab, or a restart of the browser, asks again.
const KEY = "shoal.token";
export const session = {
    get token() {
        return sessionStorage.getItem(KEY) ?? "";
    },
    set(token) {
        sessionStorage.setItem(KEY, token);
    },
    clear() {
        sessionStorage.removeItem(KEY);
    },
};
// Called when the server does not accept the token any more.
let onSignedOut = () => { };
export function whenSignedOut(call) {
    onSignedOut = call;
}
function query(fields) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(fields)) {
        if (value !== undefined && value !== "")
            parameters.set(name, String(value));
    }
    const text = parameters.toString();
    return text ? `?${text}` : "";
}
async function problem(response) {
    try {
        const body = await response.json();
        return new ApiError(response.status, body.detail ?? response.statusText, body.errors ?? []);
    }
    catch {
        return new ApiError(response.status, `${response.status} ${response.statusText}`);
    }
}
export async function request(path, options = {}) {
    const { json, ...rest } = options;
    const headers = new Headers(rest.headers);
    if (session.token)
        headers.set("Authorization", `Bearer ${session.token}`);
    if (json !== undefined)
        headers.set("Content-Type", "application/json");
    const response = await fetch(`/api/v1${path}`, {
        ...rest,
        headers,
        credentials: "omit",
        cache: "no-store",
        ...(json !== undefined ? { body: JSON.stringify(json) } : {}),
    });
    if (response.ok)
        return response;
    const error = await problem(response);
    if (response.status === 401 && session.token) {
        session.clear();
        onSignedOut();
    }
    throw error;
}
async function get(path, signal) {
    const response = await request(path, signal ? { signal } : {});
    return response.json();
}
const id = encodeURIComponent;
export const api = {
    me: () => get("/me"),
    server: () => get("/server"),
    signIns: () => get("/sign-in"),
    jobs: (fields, signal) => get(`/jobs${query(fields)}`, signal),
    job: (job) => get(`/jobs/${id(job)}`),
    tasks: (job) => get(`/jobs/${id(job)}/tasks`),
    events: (job, after) => get(`/jobs/${id(job)}/events${query({ limit: 1000, after })}`),
    why: (job) => get(`/jobs/${id(job)}/why`),
    series: (job) => get(`/jobs/${id(job)}/series`),
    points: (job, name, fields) => get(`/jobs/${id(job)}/series/${id(name)}${query(fields)}`),
    logs: (job) => get(`/jobs/${id(job)}/logs`),
    readLog: async (job, log, fields) => {
        const [task, attempt] = splitLogName(log);
        const response = await request(`/jobs/${id(job)}/logs/${id(task)}/${id(attempt)}${query(fields)}`);
        return new Uint8Array(await response.arrayBuffer());
    },
    outputs: (job) => get(`/jobs/${id(job)}/outputs`),
    readOutput: async (job, file) => (await request(`/jobs/${id(job)}/outputs/${id(file.task)}/${file.attempt}${query({ path: file.path })}`)).arrayBuffer(),
    queues: () => get("/queues"),
    engines: () => get("/engines"),
    usage: () => get("/usage"),
    tokens: () => get("/tokens?limit=1000"),
    revoke: (token) => request(`/tokens/${id(token)}`, { method: "DELETE" }),
    act: (job, action, json = {}) => request(`/jobs/${id(job)}/${action}`, { method: "POST", json }),
    remove: (job) => request(`/jobs/${id(job)}`, { method: "DELETE" }),
    plan: async (file) => (await request("/plan", { method: "POST", json: { file } })).json(),
    dryRun: async (file) => (await request("/dry-run", { method: "POST", json: { file } })).json(),
    submit: async (file, key) => (await request("/jobs", {
        method: "POST",
        json: { file },
        headers: { "Idempotency-Key": key },
    })).json(),
};
// "worker-0.1" is the second attempt of worker 0.
function splitLogName(log) {
    const dot = log.lastIndexOf(".");
    return [log.slice(0, dot), log.slice(dot + 1)];
}
