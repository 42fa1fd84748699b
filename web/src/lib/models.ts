// Models of a team, as the REST interface gives them (docs/serving.md).
import { get, id, query, request } from "./api";

export interface ModelSummary {
  name: string;
  versions: number;
  bytes: number;
  newest: number;
  promoted: number;
  changed?: string;
}

export interface BriefVersion {
  version: number;
  created: string;
  by: string;
  job: string;
  source: string;
  digest: string;
  bytes: number;
  files: number;
  format: string;
  tags: string[];
  measures: Record<string, unknown>;
}

export interface Model {
  name: string;
  tags: Record<string, number>;
  previous: number;
  versions: BriefVersion[];
}

export interface ModelVersion {
  name: string;
  version: number;
  created: string;
  by: string;
  job: string;
  source: string;
  digest: string;
  bytes: number;
  tags: string[];
  files: { name: string; bytes: number; sha256: string }[];
  metadata: Record<string, unknown>;
}

export interface Differences {
  versions: [string, string];
  differences: Record<string, [string, string]>;
}

const place = (team: string, model = "") =>
  `/teams/${id(team)}/models${model ? `/${id(model)}` : ""}`;

export const models = {
  list: (team: string) => get<{ items: ModelSummary[] }>(place(team)),
  one: (team: string, model: string) => get<Model>(place(team, model)),
  version: (team: string, model: string, version: string) =>
    get<ModelVersion>(`${place(team, model)}/versions/${id(version)}`),
  differences: (team: string, first: string, second: string) =>
    get<Differences>(`/teams/${id(team)}/model-differences${query({ first, second })}`),
  tag: (team: string, model: string, tag: string, version: number) =>
    request(`${place(team, model)}/tags/${id(tag)}`, {
      method: "PUT",
      json: { version: String(version) },
    }),
  untag: (team: string, model: string, tag: string) =>
    request(`${place(team, model)}/tags/${id(tag)}`, { method: "DELETE" }),
  rollback: (team: string, model: string) =>
    request(`${place(team, model)}/rollback`, { method: "POST", json: {} }),
  remove: (team: string, model: string, version: number) =>
    request(`${place(team, model)}/versions/${version}`, { method: "DELETE" }),
  file: async (team: string, model: string, version: number, path: string) =>
    (
      await request(`${place(team, model)}/versions/${version}/files${query({ path })}`)
    ).arrayBuffer(),
};

// Fields of nested objects as "OUTER.INNER" with their texts, in order of their names.
export function flat(object: Record<string, unknown>, prefix = ""): [string, string][] {
  return Object.entries(object)
    .flatMap(([name, value]): [string, string][] =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? flat(value as Record<string, unknown>, `${prefix}${name}.`)
        : [[prefix + name, typeof value === "string" ? value : JSON.stringify(value)]],
    )
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

// The measures that are numbers, of those in the order in which commands show them first.
const FIRST = ["auc", "r2", "rmse", "mae", "log_loss", "accuracy", "macro_f1"];
export function measuresOf(version: { measures: Record<string, unknown> }): [string, number][] {
  const numbers = Object.entries(version.measures).filter(
    (one): one is [string, number] => typeof one[1] === "number" && one[0] !== "examples",
  );
  const rank = (name: string) => (FIRST.indexOf(name) + FIRST.length + 1) % (FIRST.length + 1);
  return numbers.sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
}
