// Models, secrets, the audit log, tokens, tables and a job that runs again with changes, as each role sees them.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openBrowser, openPage, Server } from "./site.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const HOSTILE = "<img src=x onerror=alert(1)>\u202eabc";

const server = new Server();
let browser;
const tokens = {};

before(async () => {
  await server.start();
  browser = await openBrowser();
  for (const role of ["viewer", "member", "operator"]) {
    await server.ask("POST", "/users", { name: role });
    await server.ask("PUT", `/teams/default/members/${role}`, { role });
    tokens[role] = (await server.ask("POST", "/tokens", { user: role, name: HOSTILE })).token;
  }
  for (const auc of [0.75, 0.875]) await train(auc);
});
after(async () => {
  await browser?.close();
  await server.end();
});

// A job that saves a model, whose texts are hostile.
async function train(auc) {
  const model = join(server.dir, `${HOSTILE}out`, "ages");
  const metadata = JSON.stringify({
    format: "shoal-linear-model",
    held_out: { auc, log_loss: 1 - auc },
    parameters: { [HOSTILE]: HOSTILE, l2: auc },
    data: { files: [HOSTILE] },
  });
  const draft = join(server.dir, "draft.json");
  writeFileSync(draft, metadata);
  mkdirSync(model, { recursive: true });
  const job = await server.submit(
    JSON.stringify({
      framework: "generic",
      name: "trainer",
      roles: { worker: { command: ["sh", "-ec", `cp ${draft} "$0"/model.json`, model] } },
      outputs: { model },
    }),
  );
  const want = auc === 0.75 ? 1 : 2;
  for (;;) {
    const reply = await server.ask("GET", "/teams/default/models/ages").catch(() => undefined);
    if ((reply?.versions.length ?? 0) >= want) return job;
    const now = await server.ask("GET", `/jobs/${job.id}`);
    assert.notEqual(now.state, "failed", now.reason);
  }
}

async function as(role, address, options) {
  const page = await openPage(browser, server, options);
  await page.goto(
    `${server.url}${address}#token=${role === "admin" ? server.token : tokens[role]}`,
  );
  await page.getByRole("navigation").waitFor();
  return page;
}

const sees = (page, selector, text) => page.locator(selector, { hasText: text }).first().waitFor();

async function close(page, ...allowed) {
  assert.deepEqual(
    page.faults.filter((fault) => !allowed.some((status) => fault.includes(status))),
    [],
  );
  await page.context().close();
}

test("versions are promoted, compared, tagged and rolled back", async () => {
  const page = await as("member", "/models");
  await page.getByRole("link", { name: "ages" }).click();
  await sees(page, "td", "0.875");
  await page.getByRole("button", { name: "Promote @1" }).click();
  await sees(page, ".state.succeeded", "promoted");
  await page.getByRole("button", { name: "Promote @2" }).click();
  await page.getByRole("button", { name: "Roll back to @1" }).click();
  await page.getByRole("button", { name: "Promote @2" }).waitFor();
  assert.equal((await server.ask("GET", "/teams/default/models/ages")).tags.promoted, 1);
  // Two tags of one version, then one of them is taken away.
  await page.getByRole("textbox", { name: "Tag" }).fill("candidate");
  await page.getByRole("button", { name: "Set the tag" }).click();
  await sees(page, "li", "candidate: @2");
  await page.getByRole("button", { name: "Remove the tag candidate" }).click();
  await page.locator("li", { hasText: "candidate" }).waitFor({ state: "detached" });
  await page.getByRole("textbox", { name: "Tag" }).fill("7");
  await page.getByRole("button", { name: "Set the tag" }).click();
  await sees(page, "[role=alert]", "digits alone");
  await page.getByLabel("Choose @1").check();
  await page.getByLabel("Choose @2").check();
  await page.getByRole("button", { name: "Compare two" }).click();
  await sees(page, "td", "parameters.l2");
  await sees(page, "td", "0.75");
  await close(page, "422");
});

test("a version shows its origin, its fields as text, and gives its files", async () => {
  const page = await as("viewer", "/models/ages/2");
  await sees(page, ".lineage", "trainer-");
  await sees(page, ".lineage", HOSTILE);
  await sees(page, "td", `parameters.${HOSTILE}`);
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download model.json" }).click();
  const download = await downloading;
  assert.equal(download.suggestedFilename(), "model.json");
  assert.equal(JSON.parse(readFileSync(await download.path(), "utf8")).held_out.auc, 0.875);
  await page.locator(".lineage a", { hasText: "trainer-" }).click();
  await sees(page, ".state", "succeeded");
  await close(page);
});

test("a viewer is shown no change, and an operator deletes what a tag does not protect", async () => {
  const viewer = await as("viewer", "/models/ages");
  await sees(viewer, "td", "0.875");
  assert.equal(await viewer.getByRole("button", { name: /Promote|Remove|Roll back/ }).count(), 0);
  await viewer.goto(`${server.url}/secrets`);
  await viewer.getByRole("alert").waitFor();
  assert.equal(await viewer.getByRole("link", { name: "Audit log" }).count(), 0);
  await close(viewer, "403");
  const member = await as("member", "/models/ages");
  await sees(member, "td", "0.875");
  assert.equal(await member.getByRole("button", { name: "Remove @2" }).count(), 0); // admin's
  await close(member);
  await train(0.9);
  const operator = await as("operator", "/models/ages");
  await operator.getByRole("button", { name: "Remove @2" }).click();
  await operator.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await operator.getByRole("link", { name: "@2" }).waitFor({ state: "detached" });
  await close(operator);
});

test("a secret is written and never read; the audit log has who did it", async () => {
  const page = await as("operator", "/secrets");
  await page.getByLabel("Name").fill("db-password");
  await page.getByLabel("Value").fill("correct horse");
  await page.getByRole("button", { name: "Set a secret" }).click();
  await sees(page, "td", "db-password");
  assert.equal(await page.getByLabel("Value").inputValue(), "");
  const kept = await page.evaluate(
    () => document.documentElement.outerHTML + JSON.stringify(sessionStorage),
  );
  assert.ok(!kept.includes("correct horse"));
  await page.getByRole("button", { name: "Remove db-password" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.locator("td", { hasText: "db-password" }).waitFor({ state: "detached" });
  await close(page);
  const audit = await as("admin", "/audit?action=setSecret");
  await sees(audit, "tr", "db-password");
  await sees(audit, "tr", "operator");
  assert.ok(!(await audit.content()).includes("correct horse"));
  await audit.getByLabel("User").fill("nobody");
  await audit.keyboard.press("Enter");
  await sees(audit, "p", "No entry matches.");
  assert.match(audit.url(), /user=nobody/);
  await close(audit);
});

test("a token is made with some scopes, shown once and revoked", async () => {
  const page = await as("member", "/account");
  await page.getByLabel("Name").fill(HOSTILE);
  for (const scope of ["jobs:write", "people:write"]) await page.getByLabel(scope).uncheck();
  await page.getByRole("button", { name: "Make it" }).click();
  const text = await page.locator("[role=status] code").textContent();
  const reply = await fetch(`${server.url}/api/v1/me`, {
    headers: { Authorization: `Bearer ${text}` },
  });
  assert.ok(!(await reply.json()).scopes.includes("jobs:write"));
  await page.reload();
  await sees(page, "td", "jobs:read, data:read");
  assert.ok(!(await page.content()).includes(text));
  await close(page);
});

test("a job runs again with changes, which are shown and tried first", async () => {
  const first = await server.submit(
    "name: again\nframework: generic\nroles: {worker: {command: [sh, -c, 'echo one']}}\n",
  );
  const page = await as("member", `/jobs/${first.id}`);
  await page.getByRole("link", { name: "Run again with changes" }).click();
  const text = page.getByLabel("The job file, in YAML");
  await sees(page, "p", "Nothing is changed yet.");
  const file = await text.inputValue();
  assert.match(file, /echo one/);
  await text.fill(file.replace("echo one", "echo two"));
  await sees(page, "ins", "echo two");
  await sees(page, "del", "echo one");
  await page.getByRole("button", { name: "Check" }).click();
  await sees(page, "[role=status]", "1 tasks");
  await page.getByRole("button", { name: "Submit" }).click();
  await sees(page, "h1", "again-");
  assert.ok(!page.url().includes(first.id), page.url());
  await page.getByRole("tab", { name: "Logs" }).click();
  await sees(page, ".log .line", "two");
  await close(page);
});

test("tables show columns, and grants to those who manage them", async () => {
  await server.ask("PUT", "/catalog/databases/shop", {
    team: "default",
    locations: [`${server.dir}/`],
  });
  await server.ask("PUT", "/catalog/tables/shop.people", {
    sources: [`${server.dir}/people.csv`],
    format: "csv",
    columns: [
      { name: HOSTILE, type: "text" },
      { name: "age", type: "integer" },
    ],
  });
  await server.ask("POST", "/catalog/tables/shop.people/grants", {
    to: "user:viewer",
    columns: ["age"],
    rows: "age < 40",
  });
  const admin = await as("admin", "/data");
  await admin.getByRole("link", { name: "shop.people" }).click();
  await sees(admin, "td", HOSTILE);
  await sees(admin, "td", "user:viewer");
  await close(admin);
  const viewer = await as("viewer", "/data/shop.people");
  await sees(viewer, "dd", "rows where age < 40");
  assert.equal(await viewer.getByRole("heading", { name: "Grants" }).count(), 0);
  await close(viewer);
});

test("axe finds nothing, in both languages and themes, at the width of a phone", async () => {
  for (const [colorScheme, locale] of [
    ["light", "en-US"],
    ["dark", "zh-CN"],
  ]) {
    const page = await as("admin", "/models", {
      colorScheme,
      locale,
      viewport: { width: 360, height: 740 },
    });
    for (const screen of [
      "/models/ages",
      "/models/ages/1",
      "/models/ages/compare?team=default&first=ages@1&second=ages@3",
      "/data/shop.people",
      "/secrets",
      "/audit",
      "/account",
    ]) {
      await page.goto(server.url + screen);
      await page.locator("main table, main form").first().waitFor();
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      assert.deepEqual(
        violations.map((one) => `${screen} ${locale}: ${one.id}: ${one.nodes[0].html}`),
        [],
      );
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 360, `${screen} is ${width} pixels wide`);
    }
    await close(page);
  }
});
