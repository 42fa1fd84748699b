import { expect, test } from "vitest";
import { mayIn, teamsOf } from "./rights";

const me = (teams: Record<string, string>, administrator = false) => ({
  user: "ann",
  administrator,
  teams,
  scopes: [],
  token: "",
});

test("each role may do what the ones before it may", () => {
  expect(mayIn(me({ red: "member" }), "red", "viewer")).toBe(true);
  expect(mayIn(me({ red: "member" }), "red", "member")).toBe(true);
  expect(mayIn(me({ red: "member" }), "red", "operator")).toBe(false);
  expect(mayIn(me({ red: "member" }), "blue", "viewer")).toBe(false);
  expect(mayIn(me({}, true), "blue", "operator")).toBe(true);
});

test("an administrator without a team has the first one", () => {
  expect(teamsOf(me({ red: "viewer", blue: "viewer" }))).toEqual(["blue", "red"]);
  expect(teamsOf(me({}, true))).toEqual(["default"]);
});
