import { useState } from "preact/hooks";
import { api, type Me, session } from "../lib/api";
import { leave } from "../lib/provider";
import { t } from "../lib/strings";
import { Fault, useLoad } from "../parts/controls";

export function SignIn(properties: { onSignedIn: (me: Me) => void; error: unknown }) {
  const { onSignedIn } = properties;
  const [token, setToken] = useState("");
  const [error, setError] = useState(properties.error);
  const ways = useLoad("sign-in", api.signIns);
  const issuer = ways.value?.issuer;
  const enter = async (event: Event) => {
    event.preventDefault();
    session.set(token.trim());
    try {
      onSignedIn(await api.me());
    } catch (problem) {
      session.clear();
      setError(problem);
    }
  };
  return (
    <main class="sign-in" id="content">
      <h1>
        <img src="/icon.svg" alt="" width="28" height="28" /> Shoal
      </h1>
      {issuer && (
        <p>
          <button type="button" class="main" onClick={() => leave().catch(setError)}>
            {t("signInAt", { place: new URL(issuer).host })}
          </button>
        </p>
      )}
      <form onSubmit={(event) => void enter(event)}>
        <label for="token">{t("token")}</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <p class="dim">{t("tokenHint")}</p>
        <Fault error={error} />
        <button type="submit" class={issuer ? "" : "main"}>
          {t("signIn")}
        </button>
      </form>
    </main>
  );
}
