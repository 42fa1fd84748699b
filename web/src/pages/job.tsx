// One job: its state and reason first, then tasks, curves, logs, events and files.
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, type Job, type JobEvent, type OutputFile, type Role } from "../lib/api";
import { bytes, duration, number, ranFor, time } from "../lib/format";
import { changed, isOver } from "../lib/job_state";
import { live } from "../lib/live";
import { go, type Place } from "../lib/router";
import { save } from "../lib/save";
import { t } from "../lib/strings";
import { rows } from "../lib/timeline";
import { Confirm, Dialog, Fault, Link, State, Tabs, useLoad, useNow } from "../parts/controls";
import { Bdi, Table } from "../parts/table";
import { Timeline } from "../parts/timeline";
import { Curves } from "./curves";
import { Logs } from "./logs";

type Action = "stop" | "suspend" | "resume" | "remove";

// The job and its events, kept up to date by one subscription.
function useJob(id: string) {
  const [job, setJob] = useState<Job>();
  const [events, setEvents] = useState<JobEvent[]>([]);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let over = false;
    let stop: (() => void) | null = null;
    const read = () =>
      api.job(id).then(
        (next) => {
          if (!over) setJob(next);
        },
        (problem) => {
          if (!over) setError(problem);
        },
      );
    void read();
    stop = live.subscribe({ job: id, events: true, logs: false }, (message) => {
      if (message.event !== "event") return;
      const event = message.data as JobEvent;
      setEvents((old) =>
        old.length > 0 && (old.at(-1)?.seq ?? 0) >= event.seq ? old : [...old, event],
      );
      setJob((old) => {
        if (!old) return old;
        const next = changed(old, event);
        if (!next || isOver(next.state) !== isOver(old.state)) void read();
        return next ?? old;
      });
    });
    return () => {
      over = true;
      stop?.();
    };
  }, [id]);
  return { job, events, error };
}

export function JobPage({ id, tab, place }: { id: string; tab: string; place: Place }) {
  const { job, events, error } = useJob(id);
  const [problem, setProblem] = useState<unknown>();
  const [asking, setAsking] = useState<Action>();
  const now = useNow(1000);
  if (error) return <Fault error={error} />;
  if (!job) return <p class="dim">{t("loading")}</p>;
  const over = isOver(job.state);
  const act = async (action: Action) => {
    setProblem(undefined);
    try {
      if (action === "remove") {
        await api.remove(id);
        go("/jobs");
      } else {
        await api.act(id, action);
      }
    } catch (fault) {
      setProblem(fault);
    }
  };
  const here = `/jobs/${encodeURIComponent(id)}`;
  return (
    <>
      <div class="bar">
        <h1>
          <bdi>{job.id}</bdi>
        </h1>
        <State state={job.state} />
        <span class="dim">{ranFor(job, now)}</span>
        <span style={{ flex: "1" }} />
        {!over && job.state !== "suspended" && (
          <button type="button" onClick={() => void act("suspend")}>
            {t("suspend")}
          </button>
        )}
        {job.state === "suspended" && (
          <button type="button" onClick={() => void act("resume")}>
            {t("resume")}
          </button>
        )}
        {!over && (
          <button type="button" class="danger" onClick={() => setAsking("stop")}>
            {t("stop")}
          </button>
        )}
        <Link href={`/new?from=${encodeURIComponent(id)}`}>{t("runChanged")}</Link>
        {over && (
          <button type="button" class="danger" onClick={() => setAsking("remove")}>
            {t("remove")}
          </button>
        )}
      </div>
      <Fault error={problem} />
      {job.reason && <p class={job.state === "failed" ? "error" : ""}>{job.reason}</p>}
      <Tabs
        current={tab}
        onChoose={(name) => go(name === "overview" ? here : `${here}/${name}`)}
        tabs={[
          ["overview", t("overview")],
          ["curves", t("curves")],
          ["logs", t("logs")],
          ["events", t("events")],
          ["files", t("files")],
          ["file", t("description")],
        ]}
      />
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
        {tab === "overview" && <Overview job={job} events={events} now={now} />}
        {tab === "curves" && <Curves job={id} over={over} place={place} />}
        {tab === "logs" && <Logs job={id} over={over} place={place} />}
        {tab === "events" && <Events events={events} />}
        {tab === "files" && <Files job={id} />}
        {tab === "file" && <pre class="file">{JSON.stringify(job.job ?? {}, null, 2)}</pre>}
      </div>
      {asking && (
        <Confirm
          text={t(asking === "remove" ? "sureRemove" : "sureStop", { name: job.id })}
          action={t(asking)}
          onYes={() => void act(asking)}
          onClose={() => setAsking(undefined)}
        />
      )}
    </>
  );
}

function Overview({ job, events, now }: { job: Job; events: JobEvent[]; now: number }) {
  const bars = useMemo(() => rows(events), [events]);
  const waits = job.state === "pending";
  const why = useLoad(`${job.id} ${waits} ${job.last_seq}`, () =>
    waits ? api.why(job.id) : Promise.resolve(undefined),
  );
  const result = (job as Job & { result?: Record<string, unknown> }).result;
  return (
    <>
      {why.value?.reason && (
        <section>
          <h2>{t("why")}</h2>
          <p>{why.value.reason}</p>
          {why.value.changes.length > 0 && (
            <>
              <p>{t("changes")}</p>
              <ul>
                {why.value.changes.map((change) => (
                  <li key={change}>{change}</li>
                ))}
              </ul>
            </>
          )}
          {why.value.forecast && (
            <p>
              {t("forecast")}: {why.value.forecast}
            </p>
          )}
        </section>
      )}
      <dl class="facts">
        <dt>{t("team")}</dt>
        <dd>
          <bdi>{job.team}</bdi>
        </dd>
        <dt>{t("user")}</dt>
        <dd>
          <bdi>{job.user}</bdi>
        </dd>
        <dt>{t("engine")}</dt>
        <dd>
          {job.engine}
          {job.job ? `, ${job.job.framework}` : ""}
        </dd>
        <dt>{t("queue")}</dt>
        <dd>{job.job?.queue ?? ""}</dd>
        <dt>{t("submitted")}</dt>
        <dd>{time(job.submitted)}</dd>
        {job.started && (
          <>
            <dt>{t("started")}</dt>
            <dd>{time(job.started)}</dd>
          </>
        )}
        {job.ended && (
          <>
            <dt>{t("ended")}</dt>
            <dd>{time(job.ended)}</dd>
          </>
        )}
        {(job.job?.roles ?? []).map((role) => (
          <>
            <dt key={role.name}>{role.name}</dt>
            <dd>
              {role.replicas} ×{role.cpu !== "0" ? ` ${role.cpu} CPU` : ""}
              {role.memory_bytes ? ` ${bytes(role.memory_bytes)}` : ""}
              {role.gpu ? ` ${role.gpu} GPU` : ""} <code>{role.command.join(" ")}</code>
            </dd>
          </>
        ))}
      </dl>
      {result && Object.keys(result).length > 0 && (
        <>
          <h2>{t("result")}</h2>
          <dl class="facts">
            {Object.entries(result).map(([name, value]) => (
              <>
                <dt key={name}>{name}</dt>
                <dd>{typeof value === "number" ? number(value) : String(value)}</dd>
              </>
            ))}
          </dl>
        </>
      )}
      {!isOver(job.state) &&
        (job.job?.roles ?? [])
          .filter((role) => role.max !== undefined && role.max !== role.min)
          .map((role) => <Scale key={role.name} job={job.id} role={role} />)}
      <h2>{t("tasks")}</h2>
      <Timeline rows={bars} now={job.ended ? Date.parse(job.ended) : now} />
      <ul class="visually-hidden">
        {bars.map((row) => {
          const last = row.spans.at(-1);
          return (
            <li key={row.task}>
              {`${row.task}: ${last?.state ?? ""} ${last?.detail ?? ""}, ${duration((last?.to || now) - (row.spans[0]?.from ?? now))}`}
            </li>
          );
        })}
      </ul>
    </>
  );
}

// The number of tasks of an elastic role.
function Scale({ job, role }: { job: string; role: Role }) {
  const [replicas, setReplicas] = useState(role.replicas);
  const [problem, setProblem] = useState<unknown>();
  const send = async (event: Event) => {
    event.preventDefault();
    setProblem(undefined);
    try {
      await api.act(job, "scale", { role: role.name, replicas });
    } catch (fault) {
      setProblem(fault);
    }
  };
  return (
    <form class="bar" onSubmit={(event) => void send(event)}>
      <label>
        {t("replicas", { role: role.name })}{" "}
        <input
          type="number"
          min={role.min ?? 0}
          max={role.max}
          value={replicas}
          onInput={(event) => setReplicas(event.currentTarget.valueAsNumber)}
        />
      </label>
      <button type="submit">{t("scale")}</button>
      <Fault error={problem} />
    </form>
  );
}

function Events({ events }: { events: JobEvent[] }) {
  return (
    <Table
      label={t("events")}
      rows={events}
      rowKey={(event) => event.seq}
      columns={[
        { head: "#", number: true, cell: (event) => event.seq },
        { head: t("time"), cell: (event) => time(event.time) },
        { head: t("kind"), cell: (event) => event.type },
        { head: t("reason"), cell: textOf },
      ]}
    />
  );
}

function textOf(event: JobEvent): string {
  const body = event.body ?? {};
  if (event.type === "task") {
    const end = body.end as { exit_code?: number; signal?: number; detail?: string } | undefined;
    const detail = end
      ? end.detail || (end.signal ? `signal ${end.signal}` : `exit code ${end.exit_code}`)
      : "";
    return `${body.role}-${body.index} ${body.state} ${detail}`.trim();
  }
  return String(body.reason ?? body.text ?? "");
}

// Programs' files are shown as text only, never as pages.
const PREVIEW = 20_000;

function Files({ job }: { job: string }) {
  const files = useLoad(job, () => api.outputs(job));
  const [preview, setPreview] = useState<{ name: string; text: string }>();
  const [problem, setProblem] = useState<unknown>();
  const read = async (file: OutputFile) => {
    try {
      setProblem(undefined);
      const data = await api.readOutput(job, file);
      return new Blob([data]);
    } catch (fault) {
      setProblem(fault);
      return undefined;
    }
  };
  const show = async (file: OutputFile) => {
    const data = await read(file);
    if (data) setPreview({ name: file.path, text: await data.slice(0, PREVIEW).text() });
  };
  const download = async (file: OutputFile) => {
    const data = await read(file);
    if (data) save(data, file.path);
  };
  const declared = Object.entries(files.value?.declared ?? {});
  return (
    <>
      <Fault error={files.error ?? problem} />
      {declared.length > 0 && (
        <>
          <h2>{t("declared")}</h2>
          <dl class="facts">
            {declared.map(([name, place]) => (
              <>
                <dt key={name}>{name}</dt>
                <dd>{place}</dd>
              </>
            ))}
          </dl>
        </>
      )}
      {files.value && (
        <Table
          label={t("files")}
          rows={files.value.items}
          rowKey={(file) => `${file.task}.${file.attempt}/${file.path}`}
          empty={t("noFiles")}
          columns={[
            { head: t("task"), cell: (file) => `${file.task}.${file.attempt}` },
            { head: t("file"), cell: (file) => <Bdi>{file.path}</Bdi> },
            { head: t("size"), number: true, cell: (file) => bytes(file.bytes) },
            {
              head: "",
              cell: (file) => (
                <div class="actions">
                  <button type="button" onClick={() => void show(file)}>
                    {t("preview")}
                  </button>
                  <button type="button" onClick={() => void download(file)}>
                    {t("download")}
                  </button>
                </div>
              ),
            },
          ]}
        />
      )}
      {preview && (
        <Dialog
          label={t("previewOf", { name: preview.name })}
          onClose={() => setPreview(undefined)}
        >
          <h2>
            <bdi>{preview.name}</bdi>
          </h2>
          <pre class="file">{preview.text}</pre>
          <button type="button" onClick={() => setPreview(undefined)}>
            {t("close")}
          </button>
        </Dialog>
      )}
    </>
  );
}

export function NotFound() {
  return (
    <p>
      {t("notFound")} <Link href="/jobs">{t("jobs")}</Link>
    </p>
  );
}
