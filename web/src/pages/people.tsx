// Secrets of a team, which can be written and not read, and the audit log.
import { useEffect, useState } from "preact/hooks";
import { type AuditEntry, api, type Me, type Secret } from "../lib/api";
import { time } from "../lib/format";
import { mayIn } from "../lib/rights";
import { type Place, setQuery } from "../lib/router";
import { t } from "../lib/strings";
import { Confirm, Fault, useLoad } from "../parts/controls";
import { Bdi, Table } from "../parts/table";
import { TeamChoice, teamOf } from "../parts/team";

export function SecretsPage({ me, place }: { me: Me; place: Place }) {
  const team = teamOf(me, place);
  const secrets = useLoad(`secrets ${team}`, () => api.secrets(team));
  const [asking, setAsking] = useState<Secret>();
  const [problem, setProblem] = useState<unknown>();
  const changes = mayIn(me, team, "operator");
  const act = async (call: () => Promise<unknown>) => {
    setProblem(undefined);
    try {
      await call();
      secrets.reload();
      return true;
    } catch (fault) {
      setProblem(fault);
      return false;
    }
  };
  return (
    <>
      <div class="bar">
        <h1>{t("secrets")}</h1>
        <TeamChoice me={me} team={team} />
      </div>
      <p class="dim">{t("secretsHint")}</p>
      <Fault error={secrets.error ?? problem} />
      {secrets.value && (
        <Table
          label={t("secrets")}
          rows={secrets.value.items}
          rowKey={(secret) => secret.name}
          empty={t("noSecrets")}
          columns={[
            { head: t("name"), cell: (secret) => <Bdi>{secret.name}</Bdi> },
            { head: t("changed"), cell: (secret) => time(secret.changed) },
            { head: t("user"), cell: (secret) => <Bdi>{secret.by ?? ""}</Bdi> },
            { head: t("size"), number: true, cell: (secret) => `${secret.bytes ?? 0} B` },
            {
              head: "",
              cell: (secret) =>
                changes && (
                  <button
                    type="button"
                    class="danger"
                    aria-label={`${t("remove")} ${secret.name}`}
                    onClick={() => setAsking(secret)}
                  >
                    {t("remove")}
                  </button>
                ),
            },
          ]}
        />
      )}
      {changes && (
        <SecretForm
          key={team}
          onSet={(name, value) => act(() => api.setSecret(team, name, value))}
        />
      )}
      {asking && (
        <Confirm
          text={t("sureSecret", { name: asking.name })}
          action={t("remove")}
          onYes={() => void act(() => api.removeSecret(team, asking.name))}
          onClose={() => setAsking(undefined)}
        />
      )}
    </>
  );
}

// The value leaves the page with the request: no draft of it is kept anywhere.
function SecretForm({ onSet }: { onSet: (name: string, value: string) => Promise<boolean> }) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [said, setSaid] = useState("");
  const send = async (event: Event) => {
    event.preventDefault();
    const done = await onSet(name, value);
    setValue("");
    if (!done) return;
    setSaid(t("secretSet", { name }));
    setName("");
  };
  return (
    <form class="fields" autocomplete="off" onSubmit={(event) => void send(event)}>
      <h2>{t("setSecret")}</h2>
      <label>
        {t("name")}
        <input
          required
          maxLength={63}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label>
        {t("value")}
        <input
          required
          type="password"
          autocomplete="new-password"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="main">
        {t("setSecret")}
      </button>
      <div role="status">{said}</div>
    </form>
  );
}

const FILTERS = ["user", "team", "action", "object"] as const;

export function AuditPage({ place }: { place: Place }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, place.query.get(name) ?? ""]));
  const key = JSON.stringify(filters);
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const [next, setNext] = useState<string>();
  const [problem, setProblem] = useState<unknown>();
  const [turn, setTurn] = useState(0);
  const more = async (after: string, isStale: () => boolean) => {
    try {
      const page = await api.audit({ ...filters, after });
      if (isStale()) return;
      setEntries((old) => (after ? [...old, ...page.items] : page.items));
      setNext(page.next);
      setProblem(undefined);
    } catch (fault) {
      if (!isStale()) setProblem(fault);
    }
  };
  useEffect(() => {
    let stale = false;
    void more("", () => stale);
    return () => {
      stale = true;
    };
  }, [key, turn]);
  return (
    <>
      <div class="bar">
        <h1>{t("audit")}</h1>
        {FILTERS.map((name) => (
          <label key={name}>
            {t(name)}{" "}
            <input
              type="search"
              value={filters[name]}
              onChange={(event) => setQuery(name, event.currentTarget.value.trim())}
            />
          </label>
        ))}
        <button type="button" onClick={() => setTurn((old) => old + 1)}>
          {t("again")}
        </button>
      </div>
      <Fault error={problem} />
      <Table
        label={t("audit")}
        rows={entries}
        rowKey={(entry) => entry.seq}
        empty={t("noEntries")}
        columns={[
          { head: t("time"), cell: (entry) => time(entry.time) },
          { head: t("user"), cell: (entry) => <Bdi>{entry.user}</Bdi> },
          { head: t("team"), cell: (entry) => <Bdi>{entry.team}</Bdi> },
          { head: t("action"), cell: (entry) => entry.action },
          { head: t("object"), cell: (entry) => <Bdi>{entry.object}</Bdi> },
          {
            head: t("status"),
            number: true,
            cell: (entry) => String(entry.detail.status ?? ""),
          },
          { head: t("from"), cell: (entry) => String(entry.detail.peer ?? "") },
        ]}
      />
      {next && (
        <button type="button" onClick={() => void more(next, () => false)}>
          {t("older")}
        </button>
      )}
    </>
  );
}
