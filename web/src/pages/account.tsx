// The reader: rights, tokens, language.
import { useState } from "preact/hooks";
import { api, type Me, type Token } from "../lib/api";
import { time } from "../lib/format";
import { has } from "../lib/rights";
import { language, setLanguage, t } from "../lib/strings";
import { Confirm, Fault, useLoad } from "../parts/controls";
import { Bdi, Table } from "../parts/table";

export function AccountPage({ me, version }: { me: Me; version: string }) {
  const tokens = useLoad("tokens", api.tokens);
  const [asking, setAsking] = useState<Token>();
  const [problem, setProblem] = useState<unknown>();
  const revoke = async (token: Token) => {
    try {
      await api.revoke(token.id);
      tokens.reload();
    } catch (fault) {
      setProblem(fault);
    }
  };
  return (
    <>
      <h1>
        <bdi>{me.user}</bdi>
      </h1>
      <dl class="facts">
        <dt>{t("teams")}</dt>
        <dd>
          {Object.entries(me.teams)
            .map(([team, role]) => `${team}: ${role}`)
            .join(", ")}
          {me.administrator ? " · administrator" : ""}
        </dd>
        <dt>Shoal</dt>
        <dd>{version}</dd>
        <dt>
          <label for="language">Language · 语言</label>
        </dt>
        <dd>
          <select
            id="language"
            value={language()}
            onChange={(event) => setLanguage(event.currentTarget.value === "zh" ? "zh" : "en")}
          >
            <option value="en">English</option>
            <option value="zh">中文</option>
          </select>
        </dd>
      </dl>
      <h2>{t("tokens")}</h2>
      <Fault error={tokens.error ?? problem} />
      {tokens.value && (
        <Table
          label={t("tokens")}
          rows={tokens.value.items}
          rowKey={(token) => token.id}
          columns={[
            {
              head: t("name"),
              cell: (token) => (
                <>
                  <Bdi>{token.name}</Bdi>{" "}
                  {token.id === me.token && <span class="dim">({t("thisOne")})</span>}
                </>
              ),
            },
            { head: t("scopes"), cell: (token) => token.scopes.join(", ") },
            { head: t("made"), cell: (token) => time(token.created) },
            { head: t("lastUsed"), cell: (token) => time(token.last_used) },
            {
              head: t("expires"),
              cell: (token) => (token.expires ? time(token.expires) : t("never")),
            },
            {
              head: "",
              cell: (token) => (
                <button
                  type="button"
                  class="danger"
                  aria-label={`${t("revoke")} ${token.name}`}
                  onClick={() => setAsking(token)}
                >
                  {t("revoke")}
                </button>
              ),
            },
          ]}
        />
      )}
      {has(me, "people:write") && <TokenForm me={me} onMade={tokens.reload} />}
      {asking && (
        <Confirm
          text={t("sureRevoke", { name: asking.name })}
          action={t("revoke")}
          onYes={() => void revoke(asking)}
          onClose={() => setAsking(undefined)}
        />
      )}
    </>
  );
}

const DAY_SECONDS = 86_400;

// The text of a new token is shown once and kept nowhere.
function TokenForm({ me, onMade }: { me: Me; onMade: () => void }) {
  const [name, setName] = useState("");
  const [days, setDays] = useState(90);
  const [scopes, setScopes] = useState<readonly string[]>(me.scopes);
  const [made, setMade] = useState("");
  const [problem, setProblem] = useState<unknown>();
  const send = async (event: Event) => {
    event.preventDefault();
    setProblem(undefined);
    setMade("");
    try {
      const reply = await api.createToken({
        name,
        scopes: [...scopes],
        seconds: days * DAY_SECONDS,
      });
      setMade(reply.token);
      setName("");
      onMade();
    } catch (fault) {
      setProblem(fault);
    }
  };
  return (
    <form class="fields" onSubmit={(event) => void send(event)}>
      <h2>{t("newToken")}</h2>
      <label>
        {t("name")}
        <input
          required
          maxLength={128}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label>
        {t("days")}
        <input
          type="number"
          required
          min={1}
          max={3650}
          value={days}
          onInput={(event) => setDays(event.currentTarget.valueAsNumber)}
        />
      </label>
      <fieldset>
        <legend>{t("scopes")}</legend>
        {me.scopes.map((scope) => (
          <label key={scope}>
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              onChange={() =>
                setScopes((old) =>
                  old.includes(scope) ? old.filter((one) => one !== scope) : [...old, scope],
                )
              }
            />{" "}
            {scope}
          </label>
        ))}
      </fieldset>
      <button type="submit" class="main" disabled={scopes.length === 0}>
        {t("makeToken")}
      </button>
      <Fault error={problem} />
      <div role="status">
        {made && (
          <p>
            {t("tokenMade")} <code class="long">{made}</code>
          </p>
        )}
      </div>
    </form>
  );
}
