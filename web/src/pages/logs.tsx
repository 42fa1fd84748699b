// The logs of a job's tasks: one, or all merged, as they grow.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { pieces, plain } from "../lib/ansi";
import { api, type LogInfo } from "../lib/api";
import { bytesOf, Lines } from "../lib/lines";
import { live } from "../lib/live";
import { type Place, setQuery } from "../lib/router";
import { t } from "../lib/strings";
import { Fault, useLoad } from "../parts/controls";
import { VirtualList } from "../parts/virtual";

const PIECE = 4 << 20;
// Of each log where all are shown together.
const TAIL_LINES = 5000;
const ROW = 18;

interface Shown {
  task: string; // "" where one log is shown
  text: string;
}

function logName(log: LogInfo): string {
  return `${log.role}-${log.index}.${log.attempt}`;
}

// Reads a whole log in pieces and calls `grew` after each.
async function readAll(
  job: string,
  name: string,
  lines: Lines,
  grew: () => void,
  stopped: () => boolean,
) {
  for (;;) {
    const bytes = await api.readLog(job, name, { offset: lines.offset, limit: PIECE });
    if (stopped() || bytes.length === 0) return;
    lines.add(bytes);
    grew();
  }
}

// What is shown changes as logs grow: `version` counts that.
class Feed {
  readonly shown: Shown[] = [];
  version = 0;
  error: unknown;
  private stopped = false;
  private stop: (() => void) | null = null;
  private timer = 0;

  constructor(
    private readonly job: string,
    private readonly chosen: string,
    private readonly grew: () => void,
  ) {}

  async start(logs: LogInfo[], over: boolean) {
    const names = this.chosen ? [this.chosen] : logs.map(logName);
    const positions: string[] = [];
    try {
      for (const name of names) {
        const size = logs.find((log) => logName(log) === name)?.bytes ?? 0;
        const lines = new Lines();
        if (this.chosen) {
          await readAll(
            this.job,
            name,
            lines,
            () => this.show(name, lines),
            () => this.stopped,
          );
        } else {
          const tail = await api.readLog(this.job, name, { tail: TAIL_LINES });
          lines.offset = Math.max(0, size - tail.length);
          lines.add(tail);
        }
        if (this.stopped) return;
        this.show(name, lines);
        positions.push(`${name}:${lines.offset}`);
      }
    } catch (error) {
      this.error = error;
      this.change();
    }
    if (!over && !this.stopped) this.follow(positions);
  }

  end() {
    this.stopped = true;
    this.stop?.();
    clearTimeout(this.timer);
  }

  private taken = new Map<string, number>(); // lines of each log that are shown

  private show(name: string, lines: Lines) {
    const from = this.taken.get(name) ?? 0;
    for (let i = from; i < lines.lines.length; ++i) {
      this.shown.push({ task: this.chosen ? "" : name, text: lines.lines[i] ?? "" });
    }
    this.taken.set(name, lines.lines.length);
    this.change();
  }

  private follow(positions: string[]) {
    const logs = new Map<string, Lines>();
    const fields: Record<string, unknown> = {
      job: this.job,
      logs: true,
      events: false,
      from: positions.join(","),
    };
    this.stop = live.subscribe(fields, (message) => {
      if (message.event !== "log") return;
      const data = message.data as { role: string; index: number; attempt: number };
      const name = `${data.role}-${data.index}.${data.attempt}`;
      if (this.chosen && name !== this.chosen) return;
      let lines = logs.get(name);
      if (!lines) {
        lines = new Lines();
        logs.set(name, lines);
        this.taken.set(name, 0);
      }
      lines.add(bytesOf(message.data as { text?: string; base64?: string }));
      this.show(name, lines);
    });
  }

  // At most once a frame or so, whatever comes.
  private change() {
    if (this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      ++this.version;
      this.grew();
    }, 50);
  }
}

export function Logs({ job, over, place }: { job: string; over: boolean; place: Place }) {
  const chosen = place.query.get("log") ?? "";
  const search = place.query.get("find") ?? "";
  const logs = useLoad(job, () => api.logs(job));
  const [version, setVersion] = useState(0);
  const [atEnd, setAtEnd] = useState(!over);
  const [hit, setHit] = useState(-1);
  const feed = useRef<Feed | null>(null);
  const known = logs.value?.items;
  useEffect(() => {
    if (!known) return;
    const mine = new Feed(job, chosen, () => setVersion((old) => old + 1));
    feed.current = mine;
    void mine.start(known, over);
    return () => mine.end();
  }, [known, job, chosen]);
  // Logs of tasks that start later are in the list only when it is read again.
  useEffect(() => {
    if (over || (known && known.length > 0)) return;
    const timer = setInterval(logs.reload, 2000);
    return () => clearInterval(timer);
  }, [over, known]);

  const shown = feed.current?.shown ?? [];
  const hits = useMemo(() => {
    if (!search) return [];
    const wanted = search.toLowerCase();
    const found: number[] = [];
    shown.forEach((line, index) => {
      if (
        line.text.toLowerCase().includes(wanted) &&
        plain(line.text).toLowerCase().includes(wanted)
      )
        found.push(index);
    });
    return found;
  }, [version, search, shown]);
  const isHit = useMemo(() => new Set(hits), [hits]);
  const step = (by: number) => {
    if (hits.length === 0) return;
    const at = hits.findIndex((index) => index >= hit);
    const next =
      (at < 0 ? 0 : by > 0 && hits[at] === hit ? at + by : by < 0 ? at + by : at) + hits.length;
    setAtEnd(false);
    setHit(hits[next % hits.length] ?? -1);
  };

  return (
    <>
      <div class="bar">
        <label>
          {t("task")}{" "}
          <select value={chosen} onChange={(event) => setQuery("log", event.currentTarget.value)}>
            <option value="">{t("allTasks")}</option>
            {(known ?? []).map((log) => (
              <option key={logName(log)} value={logName(log)}>
                {logName(log)}
              </option>
            ))}
          </select>
        </label>
        <input
          type="search"
          aria-label={t("find")}
          placeholder={t("find")}
          value={search}
          onInput={(event) => setQuery("find", event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
          }}
        />
        {search && <span role="status">{t("matches", { count: hits.length })}</span>}
        {!over && (
          <label>
            <input type="checkbox" checked={atEnd} onChange={() => setAtEnd(!atEnd)} />{" "}
            {t("follow")}
          </label>
        )}
      </div>
      <Fault error={logs.error ?? feed.current?.error} />
      {known && shown.length === 0 && <p class="dim">{t("noLogs")}</p>}
      <VirtualList
        label={t("logs")}
        role="log"
        class="log"
        count={shown.length}
        height={ROW}
        atEnd={atEnd}
        show={hit}
        row={(index, top) => {
          const line = shown[index] as Shown;
          return (
            <div
              key={index}
              class={isHit.has(index) ? "line hit" : "line"}
              style={{ transform: `translateY(${top}px)` }}
            >
              {line.task && <b>{line.task} </b>}
              {pieces(line.text).map((piece, number) => (
                <span key={number} class={piece.style}>
                  {piece.text}
                </span>
              ))}
            </div>
          );
        }}
      />
    </>
  );
}
