// A job file written, checked, tried and submitted.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type Submission } from "../lib/api";
import { diffLines, shortened } from "../lib/diff";
import { go } from "../lib/router";
import { t } from "../lib/strings";
import { Fault, Link } from "../parts/controls";
import { Bdi } from "../parts/table";

const EXAMPLE = `framework: generic
roles:
  worker:
    replicas: 2
    command: [sh, -c, 'echo "hello from worker $SHOAL_INDEX"; sleep 2']
`;

const DRAFT = "shoal.draft";

// `from`: the job that is to run again with changes; empty: a new one.
export function NewJobPage({ from }: { from: string }) {
  const draft = from ? `${DRAFT}.${from}` : DRAFT;
  const [text, setText] = useState(() => sessionStorage.getItem(draft) ?? (from ? "" : EXAMPLE));
  const [origin, setOrigin] = useState<string>();
  const [where, setWhere] = useState<Submission>({});
  const [error, setError] = useState<unknown>();
  const [said, setSaid] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!from) return;
    Promise.all([api.jobFile(from), api.job(from)]).then(
      ([file, job]) => {
        setOrigin(file);
        setText((old) => old || file);
        setWhere({ team: job.team, engine: job.engine });
      },
      (problem) => setError(problem),
    );
  }, [from]);
  // The same until the text changes, so that a repeated click submits one job.
  const key = useRef(crypto.randomUUID());
  const change = (value: string) => {
    setText(value);
    sessionStorage.setItem(draft, value);
    key.current = crypto.randomUUID();
    setSaid([]);
    setError(undefined);
  };
  const run = async (call: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    setSaid([]);
    try {
      await call();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const check = () =>
    run(async () => {
      const plan = (await api.plan(text, where)) as { tasks: unknown[] };
      const trial = await api.dryRun(text, where);
      setSaid([
        t("ok", { count: plan.tasks.length }),
        trial.starts
          ? t("startsNow", { flavor: trial.flavor })
          : t("waits", { reason: trial.reason }),
        ...trial.changes,
      ]);
    });
  const submit = () =>
    run(async () => {
      const job = await api.submit(text, key.current, where);
      sessionStorage.removeItem(draft);
      go(`/jobs/${encodeURIComponent(job.id)}`);
    });
  const drop = async (event: DragEvent) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    change(await file.text());
  };
  return (
    <>
      <h1>{t(from ? "runChanged" : "newJob")}</h1>
      {from && (
        <p>
          <Link href={`/jobs/${encodeURIComponent(from)}`}>
            <Bdi>{from}</Bdi>
          </Link>{" "}
          <span class="dim">{t("fromJob", { name: from })}</span>
        </p>
      )}
      <label for="job-text">
        {t("jobText")} <span class="dim">{t("drop")}</span>
      </label>
      <textarea
        id="job-text"
        class="code"
        spellcheck={false}
        value={text}
        onInput={(event) => change(event.currentTarget.value)}
        onDrop={(event) => void drop(event)}
      />
      <div class="bar">
        <button type="button" disabled={busy} onClick={() => void check()}>
          {t("check")}
        </button>
        <button type="button" class="main" disabled={busy} onClick={() => void submit()}>
          {t("submit")}
        </button>
      </div>
      <Fault error={error} />
      <div role="status">
        {said.map((line) => (
          <p key={line}>{line}</p>
        ))}
      </div>
      {origin !== undefined && <Difference before={origin} after={text} />}
    </>
  );
}

function Difference({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => shortened(diffLines(before, after)), [before, after]);
  const same = before === after;
  return (
    <section aria-label={t("difference")}>
      <h2>{t("difference")}</h2>
      {same ? (
        <p class="dim">{t("unchanged")}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll it
        <pre class="file diff" tabIndex={0}>
          {lines.map((line, at) =>
            line === null ? (
              <div key={at} class="dim">
                {t("leftOut")}
              </div>
            ) : line.kind === "added" ? (
              <ins key={at}>{`+ ${line.text}\n`}</ins>
            ) : line.kind === "removed" ? (
              <del key={at}>{`- ${line.text}\n`}</del>
            ) : (
              <span key={at}>{`  ${line.text}\n`}</span>
            ),
          )}
        </pre>
      )}
    </section>
  );
}
