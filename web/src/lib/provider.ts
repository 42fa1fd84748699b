// Sign-in at the server's OpenID Connect provider: the browser goes there and comes back with a code
// (docs/oidc.md). The server checks everything; this keeps what belongs together over the way.
import { api, session } from "./api";

// Where the browser comes back to; one of `redirect_uris` of the server's configuration.
export const RETURN = "/signed-in";
const KEY = "shoal.sign-in";

export async function leave() {
  const begun = await api.beginSignIn(location.origin + RETURN);
  sessionStorage.setItem(KEY, JSON.stringify({ state: begun.state, binding: begun.binding }));
  location.assign(begun.url);
}

// On the way back: takes the token. Its error is for the reader.
export async function comeBack(query: URLSearchParams) {
  const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as {
    state?: string;
    binding?: string;
  };
  sessionStorage.removeItem(KEY);
  history.replaceState(null, "", "/jobs");
  const refusal = query.get("error_description") ?? query.get("error");
  if (refusal) throw new Error(refusal);
  const code = query.get("code");
  if (!code || !kept.state || !kept.binding || query.get("state") !== kept.state)
    throw new Error("this sign-in was not begun in this tab; sign in again");
  const { token } = await api.finishSignIn(kept.state, kept.binding, code);
  session.set(token);
}
