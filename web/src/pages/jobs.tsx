// The list of jobs, with search, filters in the address, and actions on several.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type Job } from "../lib/api";
import { ranFor, time } from "../lib/format";
import { isOver, matches } from "../lib/job_state";
import { jobs } from "../lib/jobs";
import { go, type Place, setQuery } from "../lib/router";
import { t } from "../lib/strings";
import { Confirm, Fault, Link, State, useNow } from "../parts/controls";
import { VirtualList } from "../parts/virtual";

const STATES = [
  "pending",
  "admitted",
  "starting",
  "running",
  "suspended",
  "finishing",
  "succeeded",
  "failed",
  "cancelled",
];
const ROW = 36;

export function JobsPage({ place }: { place: Place }) {
  const [version, setVersion] = useState(jobs.version);
  useEffect(() => jobs.watch(() => setVersion(jobs.version)), []);
  const now = useNow(1000);
  const search = place.query.get("q") ?? "";
  const state = place.query.get("state") ?? "";
  const team = place.query.get("team") ?? "";
  const [current, setCurrent] = useState(-1);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState<unknown>();
  const field = useRef<HTMLInputElement>(null);

  const shown = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return jobs.list.filter((job) => matches(job, words, state, team));
  }, [version, search, state, team]);
  const teams = useMemo(() => [...new Set(jobs.list.map((job) => job.team))].sort(), [version]);
  const stoppable = shown.filter((job) => chosen.has(job.id) && !isOver(job.state));

  const toggle = (job: Job) => {
    const next = new Set(chosen);
    if (!next.delete(job.id)) next.add(job.id);
    setChosen(next);
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as HTMLElement).tagName);
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const job = shown[current];
      if (event.key === "/") field.current?.focus();
      else if (event.key === "j") setCurrent(Math.min(current + 1, shown.length - 1));
      else if (event.key === "k") setCurrent(Math.max(current - 1, 0));
      else if (event.key === "x" && job) toggle(job);
      else if (event.key === "Enter" && job && event.target === document.body)
        go(`/jobs/${encodeURIComponent(job.id)}`);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  });

  const stopAll = async () => {
    setError(undefined);
    const results = await Promise.allSettled(stoppable.map((job) => api.act(job.id, "stop")));
    const failed = results.find((result) => result.status === "rejected");
    if (failed) setError(failed.reason);
    setChosen(new Set());
  };

  const all = shown.length > 0 && shown.every((job) => chosen.has(job.id));
  return (
    <>
      <div class="bar">
        <h1>{t("jobs")}</h1>
        <input
          ref={field}
          type="search"
          value={search}
          placeholder={t("searchJobs")}
          aria-label={t("searchJobs")}
          onInput={(event) => setQuery("q", event.currentTarget.value)}
        />
        <label>
          {t("state")}{" "}
          <select value={state} onChange={(event) => setQuery("state", event.currentTarget.value)}>
            <option value="">{t("all")}</option>
            {STATES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          {t("team")}{" "}
          <select value={team} onChange={(event) => setQuery("team", event.currentTarget.value)}>
            <option value="">{t("all")}</option>
            {teams.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {chosen.size > 0 && (
          <>
            <span>{t("chosen", { count: chosen.size })}</span>
            <button
              type="button"
              class="danger"
              disabled={stoppable.length === 0}
              onClick={() => setAsking(true)}
            >
              {t("stopChosen")}
            </button>
          </>
        )}
      </div>
      <Fault error={error ?? jobs.error} />
      <p class="dim" role="status">
        {jobs.loading && jobs.list.length > 0
          ? t("loadingMore")
          : jobs.loading
            ? t("loading")
            : shown.length === 0
              ? t(jobs.list.length === 0 ? "firstJob" : "noJobs")
              : t("ofJobs", { shown: shown.length, all: jobs.list.length })}
      </p>
      <VirtualList
        label={t("jobs")}
        class="jobs"
        style={{ height: "calc(100vh - 11.5rem)", minHeight: "12rem" }}
        count={shown.length}
        height={ROW}
        show={current}
        head={
          <div class="head dim" role="row">
            <span role="columnheader">
              <input
                type="checkbox"
                aria-label={t("chooseAll")}
                checked={all}
                onChange={() => setChosen(new Set(all ? [] : shown.map((job) => job.id)))}
              />
            </span>
            <span role="columnheader">{t("name")}</span>
            <span role="columnheader">{t("state")}</span>
            <span role="columnheader">{t("engine")}</span>
            <span role="columnheader">{t("team")}</span>
            <span role="columnheader">{t("user")}</span>
            <span role="columnheader">{t("submitted")}</span>
            <span role="columnheader">{t("ran")}</span>
            <span role="columnheader">{t("reason")}</span>
          </div>
        }
        row={(index, top) => {
          const job = shown[index] as Job;
          return (
            <div
              key={job.id}
              class={index === current ? "row current" : "row"}
              style={{ transform: `translateY(${top}px)` }}
              role="row"
              aria-rowindex={index + 1}
            >
              <span role="cell">
                <input
                  type="checkbox"
                  aria-label={t("choose", { name: job.id })}
                  checked={chosen.has(job.id)}
                  onChange={() => toggle(job)}
                />
              </span>
              <span role="cell">
                <Link href={`/jobs/${encodeURIComponent(job.id)}`}>
                  <bdi>{job.id}</bdi>
                </Link>
              </span>
              <span role="cell">
                <State state={job.state} />
              </span>
              <span role="cell">{job.engine}</span>
              <span role="cell">
                <bdi>{job.team}</bdi>
              </span>
              <span role="cell">
                <bdi>{job.user}</bdi>
              </span>
              <span role="cell">{time(job.submitted)}</span>
              <span role="cell">{ranFor(job, now)}</span>
              <span role="cell" class="dim" title={job.reason}>
                {job.reason}
              </span>
            </div>
          );
        }}
      />
      {asking && (
        <Confirm
          text={t("sureStop", { name: t("chosen", { count: stoppable.length }) })}
          action={t("stop")}
          onYes={() => void stopAll()}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
