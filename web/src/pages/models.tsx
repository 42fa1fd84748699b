// Models of a team: their versions, how they differ, what they come from; promotion and tags.
import { useState } from "preact/hooks";
import { api, type Me } from "../lib/api";
import { bytes, number, time } from "../lib/format";
import {
  type BriefVersion,
  flat,
  type Model,
  type ModelVersion,
  measuresOf,
  models,
} from "../lib/models";
import { mayIn } from "../lib/rights";
import { go, type Place } from "../lib/router";
import { save } from "../lib/save";
import { t } from "../lib/strings";
import { Confirm, Fault, Link, useLoad } from "../parts/controls";
import { Bdi, Table } from "../parts/table";
import { TeamChoice, teamOf } from "../parts/team";

const PROMOTED = "promoted";
const SHOWN_DIGEST = 12;
const MEASURES = 3; // in the table of versions

export function addressOf(team: string, model?: string, version?: number | string): string {
  const path = ["/models", model, version]
    .filter((part) => part !== undefined)
    .map((part, at) => (at === 0 ? part : encodeURIComponent(String(part))))
    .join("/");
  return `${path}?team=${encodeURIComponent(team)}`;
}

export function ModelsPage({ me, place }: { me: Me; place: Place }) {
  const team = teamOf(me, place);
  const [, model, version] = place.path;
  if (!model) return <List me={me} team={team} />;
  if (version === "compare")
    return (
      <Compare
        team={team}
        first={place.query.get("first") ?? ""}
        second={place.query.get("second") ?? ""}
      />
    );
  if (version) return <Version key={version} team={team} model={model} version={version} />;
  return <One key={`${team}/${model}`} me={me} team={team} model={model} />;
}

function List({ me, team }: { me: Me; team: string }) {
  const list = useLoad(`models ${team}`, () => models.list(team));
  return (
    <>
      <div class="bar">
        <h1>{t("models")}</h1>
        <TeamChoice me={me} team={team} />
      </div>
      <Fault error={list.error} />
      {list.value && (
        <Table
          label={t("models")}
          rows={list.value.items}
          rowKey={(model) => model.name}
          empty={t("noModels")}
          columns={[
            {
              head: t("name"),
              cell: (model) => (
                <Link href={addressOf(team, model.name)}>
                  <Bdi>{model.name}</Bdi>
                </Link>
              ),
            },
            { head: t("versions"), number: true, cell: (model) => model.versions },
            {
              head: t("promotedOne"),
              number: true,
              cell: (model) => (model.promoted ? `@${model.promoted}` : "–"),
            },
            {
              head: t("newest"),
              number: true,
              cell: (model) => (model.newest ? `@${model.newest}` : "–"),
            },
            { head: t("made"), cell: (model) => time(model.changed) },
            { head: t("size"), number: true, cell: (model) => bytes(model.bytes) },
          ]}
        />
      )}
    </>
  );
}

function Tags({ tags }: { tags: string[] }) {
  return (
    <>
      {tags.map((tag) => (
        <span key={tag} class={`state ${tag === PROMOTED ? "succeeded" : ""}`}>
          <Bdi>{tag}</Bdi>
        </span>
      ))}
    </>
  );
}

function One({ me, team, model }: { me: Me; team: string; model: string }) {
  const found = useLoad(`model ${team} ${model}`, () => models.one(team, model));
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const [asking, setAsking] = useState<BriefVersion>();
  const [problem, setProblem] = useState<unknown>();
  const act = async (call: () => Promise<unknown>) => {
    setProblem(undefined);
    try {
      await call();
      found.reload();
    } catch (fault) {
      setProblem(fault);
    }
  };
  const choose = (version: number) =>
    setChosen((old) =>
      old.includes(version) ? old.filter((one) => one !== version) : [...old, version].slice(-2),
    );
  const compare = () => {
    const [first, second] = [...chosen].sort((a, b) => a - b);
    const fields = new URLSearchParams({
      team,
      first: `${model}@${first}`,
      second: `${model}@${second}`,
    });
    go(`/models/${encodeURIComponent(model)}/compare?${fields}`);
  };
  const changes = mayIn(me, team, "member");
  const deletes = (one: BriefVersion) =>
    changes && one.tags.length === 0 && (one.by === me.user || mayIn(me, team, "operator"));
  const value = found.value;
  const names = value ? shownMeasures(value) : [];
  return (
    <>
      <div class="bar">
        <h1>
          <Link href={addressOf(team)}>{t("models")}</Link> / <Bdi>{model}</Bdi>
        </h1>
        <span style={{ flex: "1" }} />
        <button type="button" disabled={chosen.length !== 2} onClick={compare}>
          {t("compareTwo")}
        </button>
        {changes && (
          <button
            type="button"
            disabled={!value?.previous}
            onClick={() => void act(() => models.rollback(team, model))}
          >
            {t("rollback")} {value?.previous ? `@${value.previous}` : ""}
          </button>
        )}
      </div>
      <Fault error={found.error ?? problem} />
      {value && (
        <Table
          label={t("versions")}
          rows={[...value.versions].reverse()}
          rowKey={(one) => one.version}
          empty={t("noVersions")}
          columns={[
            {
              head: "",
              cell: (one) => (
                <input
                  type="checkbox"
                  aria-label={t("choose", { name: `@${one.version}` })}
                  checked={chosen.includes(one.version)}
                  onChange={() => choose(one.version)}
                />
              ),
            },
            {
              head: t("version"),
              cell: (one) => <Link href={addressOf(team, model, one.version)}>@{one.version}</Link>,
            },
            { head: t("tags"), cell: (one) => <Tags tags={one.tags} /> },
            ...names.map((name) => ({
              head: name,
              number: true,
              cell: (one: BriefVersion) => {
                const measure = one.measures[name];
                return typeof measure === "number" ? number(measure) : "–";
              },
            })),
            {
              head: t("job"),
              cell: (one) =>
                one.job ? (
                  <Link href={`/jobs/${encodeURIComponent(one.job)}`}>{one.job}</Link>
                ) : (
                  <span class="dim">{t("imported")}</span>
                ),
            },
            { head: t("user"), cell: (one) => <Bdi>{one.by}</Bdi> },
            { head: t("made"), cell: (one) => time(one.created) },
            { head: t("size"), number: true, cell: (one) => bytes(one.bytes) },
            {
              head: "",
              cell: (one) => (
                <div class="actions">
                  {changes && !one.tags.includes(PROMOTED) && (
                    <button
                      type="button"
                      aria-label={`${t("promote")} @${one.version}`}
                      onClick={() => void act(() => models.tag(team, model, PROMOTED, one.version))}
                    >
                      {t("promote")}
                    </button>
                  )}
                  {deletes(one) && (
                    <button
                      type="button"
                      class="danger"
                      aria-label={`${t("remove")} @${one.version}`}
                      onClick={() => setAsking(one)}
                    >
                      {t("remove")}
                    </button>
                  )}
                </div>
              ),
            },
          ]}
        />
      )}
      {value && changes && (
        <TagForm
          model={value}
          onTag={(tag, version) =>
            act(() =>
              version === 0
                ? models.untag(team, model, tag)
                : models.tag(team, model, tag, version),
            )
          }
        />
      )}
      {asking && (
        <Confirm
          text={t("sureVersion", { name: `${model}@${asking.version}` })}
          action={t("remove")}
          onYes={() => void act(() => models.remove(team, model, asking.version))}
          onClose={() => setAsking(undefined)}
        />
      )}
    </>
  );
}

// The measures that any version has, the well-known first.
function shownMeasures(model: Model): string[] {
  const names = new Set<string>();
  for (const version of model.versions)
    for (const [name] of measuresOf(version)) if (names.size < MEASURES) names.add(name);
  return [...names];
}

function TagForm({
  model,
  onTag,
}: {
  model: Model;
  onTag: (tag: string, version: number) => Promise<void>;
}) {
  const [tag, setTag] = useState("");
  const [version, setVersion] = useState(model.versions.at(-1)?.version ?? 0);
  const send = (event: Event) => {
    event.preventDefault();
    void onTag(tag, version).then(() => setTag(""));
  };
  return (
    <>
      <h2>{t("tags")}</h2>
      <ul class="plain">
        {Object.entries(model.tags).map(([name, number]) => (
          <li key={name}>
            <Bdi>{name}</Bdi>: @{number}{" "}
            <button
              type="button"
              aria-label={t("removeTag", { name })}
              onClick={() => void onTag(name, 0)}
            >
              {t("remove")}
            </button>
          </li>
        ))}
      </ul>
      <form class="bar" onSubmit={send}>
        <label>
          {t("tag")}{" "}
          <input
            required
            maxLength={64}
            value={tag}
            onInput={(event) => setTag(event.currentTarget.value)}
          />
        </label>
        <label>
          {t("version")}{" "}
          <select
            value={version}
            onChange={(event) => setVersion(Number(event.currentTarget.value))}
          >
            {[...model.versions].reverse().map((one) => (
              <option key={one.version} value={one.version}>
                @{one.version}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" disabled={version === 0}>
          {t("setTag")}
        </button>
      </form>
    </>
  );
}

function Version({ team, model, version }: { team: string; model: string; version: string }) {
  const found = useLoad(`version ${team} ${model} ${version}`, () =>
    models.version(team, model, version),
  );
  const [problem, setProblem] = useState<unknown>();
  const value = found.value;
  const download = async (file: string) => {
    setProblem(undefined);
    try {
      const data = await models.file(team, model, value?.version ?? 0, file);
      save(new Blob([data]), file);
    } catch (fault) {
      setProblem(fault);
    }
  };
  return (
    <>
      <h1>
        <Link href={addressOf(team)}>{t("models")}</Link> /{" "}
        <Link href={addressOf(team, model)}>
          <Bdi>{model}</Bdi>
        </Link>{" "}
        / @{value?.version ?? version}
      </h1>
      <Fault error={found.error ?? problem} />
      {value && (
        <>
          <dl class="facts">
            <dt>{t("tags")}</dt>
            <dd>
              <Tags tags={value.tags} />
            </dd>
            <dt>{t("made")}</dt>
            <dd>
              {time(value.created)} · <Bdi>{value.by}</Bdi>
            </dd>
            <dt>{t("origin")}</dt>
            <dd>
              <Bdi>{value.source}</Bdi>
            </dd>
            <dt>SHA-256</dt>
            <dd>
              <code>{value.digest}</code>
            </dd>
          </dl>
          <Origin version={value} />
          <h2>{t("files")}</h2>
          <Table
            label={t("files")}
            rows={value.files}
            rowKey={(file) => file.name}
            columns={[
              { head: t("file"), cell: (file) => <Bdi>{file.name}</Bdi> },
              { head: t("size"), number: true, cell: (file) => bytes(file.bytes) },
              {
                head: "SHA-256",
                cell: (file) => <code>{file.sha256.slice(0, SHOWN_DIGEST)}</code>,
              },
              {
                head: "",
                cell: (file) => (
                  <button
                    type="button"
                    aria-label={`${t("download")} ${file.name}`}
                    onClick={() => void download(file.name)}
                  >
                    {t("download")}
                  </button>
                ),
              },
            ]}
          />
          <h2>{t("fields")}</h2>
          <Table
            label={t("fields")}
            rows={flat(value.metadata)}
            rowKey={([name]) => name}
            columns={[
              { head: t("name"), cell: ([name]) => <Bdi>{name}</Bdi> },
              { head: t("value"), cell: ([, text]) => <span class="long">{text}</span> },
            ]}
          />
        </>
      )}
    </>
  );
}

// Data → job → version: what it was trained on, as far as the reader may see it.
function Origin({ version }: { version: ModelVersion }) {
  const job = version.job;
  const lineage = useLoad(`lineage ${job}`, () =>
    job ? api.lineage(job) : Promise.resolve({ items: [] }),
  );
  const data = version.metadata.data as { files?: unknown } | undefined;
  const files = Array.isArray(data?.files) ? data.files.map(String) : [];
  const tables = lineage.value?.items.flatMap((record) => record.tables) ?? [];
  if (!job && files.length === 0) return null;
  return (
    <>
      <h2>{t("lineage")}</h2>
      <ol class="lineage" aria-label={t("lineage")}>
        <li>
          <strong>{t("data")}</strong>
          {tables.map((table) => (
            <div key={table.data}>
              <Link href={`/data/${encodeURIComponent(table.table)}`}>
                <Bdi>{table.table}</Bdi>
              </Link>{" "}
              <span class="dim">{table.columns.join(", ")}</span>
            </div>
          ))}
          {files.map((file) => (
            <div key={file}>
              <Bdi>{file}</Bdi>
            </div>
          ))}
        </li>
        {job && (
          <li>
            <strong>{t("job")}</strong>
            <div>
              <Link href={`/jobs/${encodeURIComponent(job)}`}>
                <Bdi>{job}</Bdi>
              </Link>
            </div>
          </li>
        )}
        <li>
          <strong>{t("version")}</strong>
          <div>
            <Bdi>
              {version.name}@{version.version}
            </Bdi>
          </div>
        </li>
      </ol>
    </>
  );
}

function Compare({ team, first, second }: { team: string; first: string; second: string }) {
  const found = useLoad(`differences ${team} ${first} ${second}`, () =>
    models.differences(team, first, second),
  );
  const names = found.value?.versions ?? [first, second];
  const model = first.split("@")[0] ?? "";
  return (
    <>
      <h1>
        <Link href={addressOf(team, model)}>
          <Bdi>{model}</Bdi>
        </Link>{" "}
        / {names[0]} · {names[1]}
      </h1>
      <Fault error={found.error} />
      {found.value && (
        <Table
          label={t("differences")}
          rows={Object.entries(found.value.differences)}
          rowKey={([name]) => name}
          empty={t("equal")}
          columns={[
            { head: t("name"), cell: ([name]) => <Bdi>{name}</Bdi> },
            { head: names[0], cell: ([, [value]]) => <span class="long">{value || "–"}</span> },
            { head: names[1], cell: ([, [, value]]) => <span class="long">{value || "–"}</span> },
          ]}
        />
      )}
    </>
  );
}
