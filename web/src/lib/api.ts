// The REST interface of the server (docs/rest.md). Every request carries the token of the session.

export interface Job {
  id: string;
  name: string;
  state: JobState;
  reason: string;
  engine: string;
  team: string;
  user: string;
  submitted: string;
  started?: string;
  ended?: string;
  labels?: Record<string, string>;
  last_seq: number;
  job?: JobFile;
}

export type JobState = string;

export interface Role {
  name: string;
  replicas: number;
  min?: number;
  max?: number;
  cpu: string;
  memory_bytes: number;
  gpu: number;
  command: string[];
}

export interface JobFile {
  framework: string;
  queue?: string;
  image?: string;
  roles: Role[];
  learn?: Record<string, { text: string }>;
  data?: { name: string; sources: string[]; format: string }[];
  outputs?: Record<string, string>;
}

export interface Task {
  role: string;
  index: number;
  attempt: number;
  state: string;
  text?: string;
}

export interface JobEvent {
  job: string;
  seq: number;
  time: string;
  type: string;
  body?: Record<string, unknown>;
}

export interface Series {
  name: string;
  points: number;
  first_ms: number;
  last_ms: number;
}

export interface SeriesPoints {
  name: string;
  time_ms: number[];
  mean: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
}

export interface Me {
  user: string;
  administrator: boolean;
  teams: Record<string, string>;
  scopes: string[];
  token: string;
}

export interface Page<T> {
  items: T[];
  next?: string;
}

export interface FieldError {
  field: string;
  message: string;
  line?: number;
  column?: number;
}

// A refusal of the server. `message` is the sentence that a command would print.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly errors: FieldError[] = [],
  ) {
    super(message);
  }
}

// Kept for the tab only: another tab, or a restart of the browser, asks again.
const KEY = "shoal.token";

export const session = {
  get token(): string {
    return sessionStorage.getItem(KEY) ?? "";
  },
  set(token: string) {
    sessionStorage.setItem(KEY, token);
  },
  clear() {
    sessionStorage.removeItem(KEY);
  },
};

// Called when the server does not accept the token any more.
let onSignedOut = () => {};
export function whenSignedOut(call: () => void) {
  onSignedOut = call;
}

export function query(fields: Record<string, string | number | boolean | undefined>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

async function problem(response: Response): Promise<ApiError> {
  try {
    const body = await response.json();
    return new ApiError(response.status, body.detail ?? response.statusText, body.errors ?? []);
  } catch {
    return new ApiError(response.status, `${response.status} ${response.statusText}`);
  }
}

export async function request(
  path: string,
  options: RequestInit & { json?: unknown } = {},
): Promise<Response> {
  const { json, ...rest } = options;
  const headers = new Headers(rest.headers);
  if (session.token) headers.set("Authorization", `Bearer ${session.token}`);
  if (json !== undefined) headers.set("Content-Type", "application/json");
  const response = await fetch(`/api/v1${path}`, {
    ...rest,
    headers,
    credentials: "omit",
    cache: "no-store",
    ...(json !== undefined ? { body: JSON.stringify(json) } : {}),
  });
  if (response.ok) return response;
  const error = await problem(response);
  if (response.status === 401 && session.token) {
    session.clear();
    onSignedOut();
  }
  throw error;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, signal ? { signal } : {});
  return response.json() as Promise<T>;
}

export const id = encodeURIComponent;

export const api = {
  me: () => get<Me>("/me"),
  server: () => get<{ version: string; default_engine: string }>("/server"),
  signIns: () => get<{ methods: string[]; issuer?: string }>("/sign-in"),
  beginSignIn: async (redirect: string) =>
    (
      await request("/sign-in/code", { method: "POST", json: { redirect_uri: redirect } })
    ).json() as Promise<{ url: string; state: string; binding: string }>,
  finishSignIn: async (state: string, binding: string, code: string) =>
    (
      await request("/sign-in/code/token", { method: "POST", json: { state, binding, code } })
    ).json() as Promise<{ token: string }>,
  jobs: (
    fields: { limit?: number; after?: string; state?: string; team?: string; name?: string },
    signal?: AbortSignal,
  ) => get<Page<Job>>(`/jobs${query(fields)}`, signal),
  job: (job: string) => get<Job>(`/jobs/${id(job)}`),
  tasks: (job: string) => get<Page<Task>>(`/jobs/${id(job)}/tasks`),
  events: (job: string, after?: string) =>
    get<Page<JobEvent>>(`/jobs/${id(job)}/events${query({ limit: 1000, after })}`),
  why: (job: string) => get<Why>(`/jobs/${id(job)}/why`),
  series: (job: string) => get<Page<Series>>(`/jobs/${id(job)}/series`),
  points: (job: string, name: string, fields: { points: number; from?: string; to?: string }) =>
    get<SeriesPoints>(`/jobs/${id(job)}/series/${id(name)}${query(fields)}`),
  logs: (job: string) => get<Page<LogInfo>>(`/jobs/${id(job)}/logs`),
  readLog: async (
    job: string,
    log: string,
    fields: { offset?: number; limit?: number; tail?: number },
  ) => {
    const [task, attempt] = splitLogName(log);
    const response = await request(
      `/jobs/${id(job)}/logs/${id(task)}/${id(attempt)}${query(fields)}`,
    );
    return new Uint8Array(await response.arrayBuffer());
  },
  outputs: (job: string) =>
    get<{ items: OutputFile[]; declared?: Record<string, string> }>(`/jobs/${id(job)}/outputs`),
  readOutput: async (job: string, file: OutputFile) =>
    (
      await request(
        `/jobs/${id(job)}/outputs/${id(file.task)}/${file.attempt}${query({ path: file.path })}`,
      )
    ).arrayBuffer(),
  queues: () => get<Queues>("/queues"),
  engines: () => get<Page<{ name: string; kind: string }>>("/engines"),
  usage: () => get<{ items: Usage[] }>("/usage"),
  tokens: () => get<Page<Token>>("/tokens?limit=1000"),
  revoke: (token: string) => request(`/tokens/${id(token)}`, { method: "DELETE" }),
  act: (job: string, action: string, json: unknown = {}) =>
    request(`/jobs/${id(job)}/${action}`, { method: "POST", json }),
  remove: (job: string) => request(`/jobs/${id(job)}`, { method: "DELETE" }),
  createToken: async (fields: { name: string; scopes: string[]; seconds: number }) =>
    (await request("/tokens", { method: "POST", json: fields })).json() as Promise<{
      token: string;
      name: string;
    }>,
  teams: () => get<Page<{ name: string }>>("/teams?limit=1000"),
  jobFile: async (job: string) => (await request(`/jobs/${id(job)}/file`)).text(),
  secrets: (team: string) => get<{ items: Secret[] }>(`/teams/${id(team)}/secrets`),
  setSecret: (team: string, name: string, value: string) =>
    request(`/teams/${id(team)}/secrets/${id(name)}`, { method: "PUT", json: { value } }),
  removeSecret: (team: string, name: string) =>
    request(`/teams/${id(team)}/secrets/${id(name)}`, { method: "DELETE" }),
  audit: (fields: Record<string, string | undefined>) =>
    get<Page<AuditEntry>>(`/audit${query({ limit: 200, ...fields })}`),
  lineage: (job: string) => get<{ items: LineageRecord[] }>(`/lineage${query({ job })}`),
  tables: () => get<{ items: CatalogTable[] }>("/catalog/tables"),
  table: (name: string) => get<CatalogTable>(`/catalog/tables/${id(name)}`),
  tableAccess: async (name: string) =>
    (await get<{ items: TableAccess[] }>(`/catalog/tables/${id(name)}/access`)).items[0],
  plan: async (file: string, where: Submission = {}) =>
    (
      await request("/plan", { method: "POST", json: { file, ...where } })
    ).json() as Promise<unknown>,
  dryRun: async (file: string, where: Submission = {}) =>
    (
      await request("/dry-run", { method: "POST", json: { file, ...where } })
    ).json() as Promise<Trial>,
  submit: async (file: string, key: string, where: Submission = {}) =>
    (
      await request("/jobs", {
        method: "POST",
        json: { file, ...where },
        headers: { "Idempotency-Key": key },
      })
    ).json() as Promise<Job>,
};

// Whose job it is to be, and where it is to run. What is not given the server chooses.
export interface Submission {
  team?: string;
  engine?: string;
}

export interface Secret {
  name: string;
  changed: string;
  by?: string;
  bytes?: number;
}

export interface AuditEntry {
  seq: number;
  time: string;
  user: string;
  team: string;
  action: string;
  object: string;
  detail: Record<string, unknown>;
}

export interface LineageRecord {
  job: string;
  tables: { data: string; table: string; columns: string[]; rows: string }[];
}

export interface Grant {
  id: string;
  to: string;
  columns?: string[];
  rows?: string;
  masks?: Record<string, string>;
  expires_us?: number;
}

export interface CatalogTable {
  database: string;
  name: string;
  owner: string;
  format: string;
  sources?: string[];
  columns?: { name: string; type: string }[];
  tags?: Record<string, string[]>;
  masks?: Record<string, { mask: string }>;
  grants?: Grant[];
}

export interface TableAccess {
  user: string;
  refusal?: string;
  columns?: { name: string; mask?: string }[];
  rows?: string;
}

export interface Why {
  state?: string;
  reason: string;
  changes: string[];
  forecast?: string;
}

// The answer of /dry-run.
export interface Trial {
  starts: boolean;
  refused: boolean;
  reason: string;
  flavor: string;
  tasks: number;
  changes: string[];
}

export interface LogInfo {
  task?: string;
  role: string;
  index: number;
  attempt: number;
  bytes: number;
}

export interface OutputFile {
  task: string;
  attempt: number;
  path: string;
  bytes: number;
}

export interface Hours {
  cpu_hours: number;
  memory_byte_hours: number;
  gpu_hours: number;
}

export interface Usage {
  month: string;
  team: string;
  user: string;
  queue: string;
  engine: string;
  jobs: number;
  held: Hours;
  failed: Hours;
}

export interface Token {
  id: string;
  name: string;
  scopes: string[];
  created: string;
  expires?: string;
  last_used?: string;
}

export interface QueueView {
  name: string;
  parent?: string;
  depth: number;
  mode: string;
  running: number;
  waiting: number;
  share?: number;
  flavors: {
    flavor: string;
    resources: {
      resource: string;
      nominal: number;
      used: number;
      borrowed: number;
      lent: number;
      limited: boolean;
    }[];
  }[];
  jobs: {
    id?: string;
    name?: string;
    user?: string;
    team: string;
    priority: number;
    reason: string;
  }[];
}

export type Amounts = Record<string, number>;

export interface Queues {
  default_queue: string;
  items: QueueView[];
  machines: { flavor: string; total: Amounts; used: Amounts }[];
}

// "worker-0.1" is the second attempt of worker 0.
function splitLogName(log: string): [string, string] {
  const dot = log.lastIndexOf(".");
  return [log.slice(0, dot), log.slice(dot + 1)];
}
