import { useState } from "preact/hooks";
import { api, type Me, session } from "../lib/api";
import { t } from "../lib/strings";
import { Fault } from "../parts/controls";

export function SignIn({ onSignedIn }: { onSignedIn: (me: Me) => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
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
        <button type="submit" class="main">
          {t("signIn")}
        </button>
      </form>
    </main>
  );
}
