// The team whose things a page shows: in the address, else the reader's first one.
import { useState } from "preact/hooks";
import { api, type Me } from "../lib/api";
import { teamsOf } from "../lib/rights";
import { type Place, setQuery } from "../lib/router";
import { t } from "../lib/strings";
import { useLoad } from "./controls";

export function teamOf(me: Me, place: Place): string {
  return place.query.get("team") ?? teamsOf(me)[0] ?? "default";
}

// Nothing where there is one team only. An administrator may name any.
export function TeamChoice({ me, team }: { me: Me; team: string }) {
  const [own] = useState(() => teamsOf(me));
  const all = useLoad("teams", () =>
    me.administrator ? api.teams() : Promise.resolve({ items: [] }),
  );
  const names = [...new Set([team, ...own, ...(all.value?.items.map((one) => one.name) ?? [])])];
  if (names.length < 2) return null;
  return (
    <label>
      {t("team")}{" "}
      <select value={team} onChange={(event) => setQuery("team", event.currentTarget.value)}>
        {names.sort().map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
