// What the reader may do: the page leaves out what the server would refuse anyway.
import type { Me } from "./api";

const ROLES = ["viewer", "member", "operator", "administrator"];

export function mayIn(me: Me, team: string, role: "viewer" | "member" | "operator"): boolean {
  if (me.administrator) return true;
  return ROLES.indexOf(me.teams[team] ?? "") >= ROLES.indexOf(role);
}

export function has(me: Me, scope: string): boolean {
  return me.scopes.includes(scope);
}

// The teams of the reader, and of an administrator at least the first one.
export function teamsOf(me: Me): string[] {
  const teams = Object.keys(me.teams).sort();
  return teams.length > 0 ? teams : ["default"];
}
