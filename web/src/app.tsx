// The frame of the page: sign-in, navigation, keys, the state of the connection.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Me, session, whenSignedOut } from "./lib/api";
import { jobs } from "./lib/jobs";
import { type Connection, live } from "./lib/live";
import { comeBack, RETURN } from "./lib/provider";
import { go, usePlace } from "./lib/router";
import { t } from "./lib/strings";
import { AccountPage } from "./pages/account";
import { DataPage } from "./pages/data";
import { JobPage, NotFound } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { ModelsPage } from "./pages/models";
import { NewJobPage } from "./pages/new_job";
import { AuditPage, SecretsPage } from "./pages/people";
import { QueuesPage, UsagePage } from "./pages/queues";
import { SignIn } from "./pages/sign_in";
import { Dialog, Link } from "./parts/controls";
import { Palette } from "./parts/palette";

const TABS = new Set(["overview", "curves", "logs", "events", "files", "file"]);

export function App() {
  const [me, setMe] = useState<Me>();
  const [checked, setChecked] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    whenSignedOut(() => setMe(undefined));
    void signInAgain();
  }, []);
  // With the token of the tab, or the code with which the browser comes back from a provider.
  const signInAgain = async () => {
    try {
      if (location.pathname === RETURN) await comeBack(new URLSearchParams(location.search));
      if (session.token) setMe(await api.me());
    } catch (problem) {
      setError(problem);
    }
    setChecked(true);
  };
  if (!checked) return null;
  if (!me) return <SignIn onSignedIn={setMe} error={error} />;
  const signOut = () => {
    sessionStorage.clear(); // drafts too
    live.close();
    jobs.reset();
    setMe(undefined);
  };
  return <Frame me={me} onSignOut={signOut} />;
}

function Frame({ me, onSignOut }: { me: Me; onSignOut: () => void }) {
  const place = usePlace();
  const [connection, setConnection] = useState<Connection>("connecting");
  const [sheet, setSheet] = useState(false);
  const [palette, setPalette] = useState(false);
  const [version, setVersion] = useState("");
  useEffect(() => live.watchState(setConnection), []);
  useEffect(() => {
    api.server().then(
      (server) => setVersion(server.version),
      () => undefined,
    );
  }, []);
  const pending = useRef("");
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPalette(true);
        return;
      }
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as HTMLElement).tagName);
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const both = pending.current + event.key;
      pending.current = event.key === "g" ? "g" : "";
      if (event.key === "?") setSheet(true);
      else if (both === "gj") go("/jobs");
      else if (both === "gq") go("/queues");
      else if (both === "gu") go("/usage");
      else if (both === "gm") go("/models");
      else if (both === "gd") go("/data");
      else if (both === "n") go("/new");
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);

  const [first = "jobs", second, third = "overview"] = place.path;
  useEffect(() => {
    document.title = second ? `${second} · Shoal` : "Shoal";
  }, [second]);
  const page =
    first === "jobs" && !second ? (
      <JobsPage place={place} />
    ) : first === "jobs" && second && TABS.has(third) ? (
      <JobPage key={second} id={second} tab={third} place={place} />
    ) : first === "new" ? (
      <NewJobPage key={place.query.get("from") ?? ""} from={place.query.get("from") ?? ""} />
    ) : first === "models" ? (
      <ModelsPage me={me} place={place} />
    ) : first === "data" ? (
      <DataPage place={place} />
    ) : first === "secrets" ? (
      <SecretsPage me={me} place={place} />
    ) : first === "audit" ? (
      <AuditPage place={place} />
    ) : first === "queues" ? (
      <QueuesPage />
    ) : first === "usage" ? (
      <UsagePage />
    ) : first === "account" ? (
      <AccountPage me={me} version={version} />
    ) : (
      <NotFound />
    );
  return (
    <>
      <a class="skip" href="#content">
        {t("skip")}
      </a>
      <header class="top">
        <Link href="/jobs">
          <img src="/icon.svg" alt="Shoal" width="24" height="24" />
        </Link>
        <nav aria-label="Shoal">
          <Link href="/jobs" current={first === "jobs"}>
            {t("jobs")}
          </Link>
          <Link href="/new" current={first === "new"}>
            {t("newJob")}
          </Link>
          <Link href="/models" current={first === "models"}>
            {t("models")}
          </Link>
          <Link href="/data" current={first === "data"}>
            {t("data")}
          </Link>
          <Link href="/queues" current={first === "queues"}>
            {t("queues")}
          </Link>
          <Link href="/usage" current={first === "usage"}>
            {t("usage")}
          </Link>
          <Link href="/secrets" current={first === "secrets"}>
            {t("secrets")}
          </Link>
          {me.administrator && (
            <Link href="/audit" current={first === "audit"}>
              {t("audit")}
            </Link>
          )}
          <Link href="/account" current={first === "account"}>
            <bdi>{me.user}</bdi>
          </Link>
        </nav>
        <button type="button" onClick={() => setPalette(true)}>
          {t("search")} <kbd>Ctrl K</kbd>
        </button>
        <button type="button" aria-label={t("keys")} onClick={() => setSheet(true)}>
          ?
        </button>
        <button type="button" onClick={onSignOut}>
          {t("signOut")}
        </button>
      </header>
      <div role="status" aria-live="polite">
        {connection === "lost" && <div class="notice">{t("lost")}</div>}
      </div>
      <main id="content" tabIndex={-1}>
        {page}
      </main>
      {palette && <Palette onClose={() => setPalette(false)} />}
      {sheet && (
        <Dialog label={t("keys")} onClose={() => setSheet(false)}>
          <h2>{t("keys")}</h2>
          <ul>
            {t("keysHelp")
              .split(" · ")
              .map((line) => (
                <li key={line}>{line}</li>
              ))}
          </ul>
          <button type="button" onClick={() => setSheet(false)}>
            {t("close")}
          </button>
        </Dialog>
      )}
    </>
  );
}
