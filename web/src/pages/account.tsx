// The reader: rights, tokens, language.
import { useState } from "preact/hooks";
import { api, type Me, type Token } from "../lib/api";
import { time } from "../lib/format";
import { language, setLanguage, t } from "../lib/strings";
import { Confirm, Fault, Scroll, useLoad } from "../parts/controls";

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
      <Scroll label={t("tokens")}>
        <table>
          <thead>
            <tr>
              <th>{t("name")}</th>
              <th>{t("made")}</th>
              <th>{t("lastUsed")}</th>
              <th>{t("expires")}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {tokens.value?.items.map((token) => (
              <tr key={token.id}>
                <td>
                  <bdi>{token.name}</bdi>{" "}
                  {token.id === me.token && <span class="dim">({t("thisOne")})</span>}
                </td>
                <td>{time(token.created)}</td>
                <td>{time(token.last_used)}</td>
                <td>{token.expires ? time(token.expires) : t("never")}</td>
                <td>
                  <button type="button" class="danger" onClick={() => setAsking(token)}>
                    {t("revoke")}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
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
