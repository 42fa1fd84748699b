// The command palette (Ctrl K): pages and jobs by a few letters.
import { useMemo, useState } from "preact/hooks";
import { matches } from "../lib/job_state";
import { jobs } from "../lib/jobs";
import { follow, go } from "../lib/router";
import { t } from "../lib/strings";
import { Dialog } from "./controls";

const MOST = 20;

export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [current, setCurrent] = useState(0);
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const pages = [
      [t("jobs"), "/jobs"],
      [t("newJob"), "/new"],
      [t("models"), "/models"],
      [t("data"), "/data"],
      [t("queues"), "/queues"],
      [t("usage"), "/usage"],
      [t("secrets"), "/secrets"],
      [t("audit"), "/audit"],
      [t("account"), "/account"],
    ].filter(([name]) => words.every((word) => (name ?? "").toLowerCase().includes(word)));
    const some = jobs.list
      .filter((job) => matches(job, words, "", ""))
      .slice(0, MOST)
      .map((job) => [`${job.id} · ${job.state}`, `/jobs/${encodeURIComponent(job.id)}`]);
    return [...pages, ...some] as [string, string][];
  }, [text]);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setCurrent(Math.min(current + 1, found.length - 1));
    else if (event.key === "ArrowUp") setCurrent(Math.max(current - 1, 0));
    else if (event.key === "Enter") {
      const chosen = found[current];
      if (chosen) go(chosen[1]);
      onClose();
    } else return;
    event.preventDefault();
  };
  return (
    <Dialog label={t("palette")} onClose={onClose}>
      <input
        type="search"
        aria-label={t("palette")}
        placeholder={t("palette")}
        style={{ width: "100%" }}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setCurrent(0);
        }}
        onKeyDown={onKey}
      />
      <ul>
        {found.map(([name, address], index) => (
          <li key={address}>
            <a
              href={address}
              class={index === current ? "current" : ""}
              onClick={(event) => {
                follow(event);
                onClose();
              }}
            >
              <bdi>{name}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
