// The page in a browser, against a real server with real local jobs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { openBrowser, openPage, Server, signIn } from "./site.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const server = new Server();
let browser;

before(async () => {
  await server.start();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await server.end();
});

const PROGRAM = (command) => `framework: generic
name: echo
roles:
  worker:
    replicas: 2
    command: [sh, -c, ${JSON.stringify(command)}]
`;

// Waits for a text anywhere in the element.
const sees = (page, selector, text) => page.locator(selector, { hasText: text }).first().waitFor();

test("a wrong token is refused with the server's sentence, a right one opens the jobs", async () => {
  const page = await openPage(browser, server);
  await page.goto(server.url);
  await page.getByLabel("Token").fill("shoal_0123456789ab_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(server.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  assert.ok(!page.url().includes("shoal_"), page.url());
  // Signed out, nothing of the session stays.
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length + document.cookie.length), 0);
  assert.deepEqual(
    page.faults.filter((fault) => !fault.includes("401")),
    [],
  );
  await page.context().close();
});

test("the token of `shoal open` leaves the address and the history", async () => {
  const page = await openPage(browser, server);
  await signIn(page, server, "/queues");
  assert.equal(page.url(), `${server.url}/queues`);
  await page.reload();
  await page.getByRole("heading", { name: "Queues" }).waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a job is written, checked, submitted, followed and removed", async () => {
  const page = await openPage(browser, server);
  await signIn(page, server, "/new");
  const text = page.getByLabel("The job file, in YAML");
  await text.fill("framework: generic\nroles: {worker: {comand: [echo]}}\n");
  await page.getByRole("button", { name: "Check" }).click();
  await sees(page, "[role=alert]", "comand");
  await text.fill(PROGRAM('echo "\\033[32mgreen\\033[0m <script>alert(1)</script>"; exit 0'));
  await page.getByRole("button", { name: "Check" }).click();
  await sees(page, "[role=status]", "2 tasks");
  await page.getByRole("button", { name: "Submit" }).click();
  await sees(page, "h1", "echo-");
  await sees(page, ".state", "succeeded");
  await page.locator("svg.timeline rect").nth(3).waitFor();
  await page.getByRole("tab", { name: "Logs" }).click();
  await sees(page, ".log .line", "<script>alert(1)</script>");
  await sees(page, ".log .ansi-2", "green");
  await page.getByLabel("Find in the log").fill("green");
  await sees(page, "[role=status]", "2 lines");
  await page.getByRole("tab", { name: "Events" }).click();
  await sees(page, "td", "exit code 0");
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  assert.deepEqual(
    page.faults.filter((fault) => !fault.includes("422")),
    [],
  );
  await page.context().close();
});

test("curves grow while the job runs, and stop ends it", async () => {
  const loss =
    "i=0; while :; do echo 'shoal.metric {\"loss\": '$((1000 / (i + 1)))'}'; i=$((i + 1)); sleep 0.1; done";
  const job = await server.submit(PROGRAM(loss));
  const page = await openPage(browser, server);
  await signIn(page, server, `/jobs/${job.id}/curves`);
  await page.locator("section.chart", { hasText: "loss" }).locator("canvas").waitFor();
  await page.getByRole("tab", { name: "Logs" }).click();
  await sees(page, ".log .line", "shoal.metric");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await sees(page, ".state", "cancelled");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a long log is read whole, found in and scrolled to its end", async () => {
  const job = await server.submit(PROGRAM('seq -f "line %.0f" 1 100000'));
  const page = await openPage(browser, server);
  await signIn(page, server, `/jobs/${job.id}`);
  await sees(page, ".state", "succeeded");
  await page.goto(`${server.url}/jobs/${job.id}/logs?log=worker-1.0`);
  await page.getByLabel("Find in the log").fill("line 99999");
  await sees(page, "[role=status]", "1 lines");
  await page.getByLabel("Find in the log").press("Enter");
  await sees(page, ".line.hit", "line 99999");
  assert.ok((await page.locator(".log .line").count()) < 200);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("filters are in the address; several jobs are stopped together", async () => {
  const ids = [];
  for (let i = 0; i < 3; ++i) ids.push((await server.submit(PROGRAM("exec sleep 1000"))).id);
  const page = await openPage(browser, server);
  await signIn(page, server, "/jobs?state=running");
  for (const id of ids) await sees(page, ".row", id);
  await page.keyboard.press("/");
  await page.keyboard.type(ids[0]);
  await sees(page, "[role=status]", "1 of");
  assert.match(page.url(), new RegExp(`q=${ids[0]}`));
  await page.reload();
  await sees(page, "[role=status]", "1 of");
  await page.getByRole("searchbox").fill("");
  await page.getByLabel("Choose all that are shown").check();
  await page.getByRole("button", { name: "Stop them" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.goto(`${server.url}/jobs?state=cancelled`);
  for (const id of ids) await sees(page, ".row", id);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a server that comes back is caught up with, without a reload", async () => {
  const page = await openPage(browser, server);
  await signIn(page, server);
  await server.stop();
  await page.locator(".notice").waitFor();
  await server.start();
  const job = await server.submit(PROGRAM("exit 0"));
  await page.locator(".notice").waitFor({ state: "detached", timeout: 60_000 });
  await page
    .locator(".row", { hasText: job.id })
    .locator(".state", { hasText: "succeeded" })
    .waitFor();
  await page.context().close();
});

test("keys alone lead everywhere", async () => {
  const page = await openPage(browser, server);
  await signIn(page, server);
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await page.getByRole("heading", { name: "Queues" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("usage");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

const SCREENS = [
  "/jobs",
  "/new",
  "/queues",
  "/usage",
  "/account",
  "/models",
  "/data",
  "/secrets",
  "/audit",
  "/new?from=JOB",
  "/jobs/JOB",
  "/jobs/JOB/logs",
  "/jobs/JOB/curves",
  "/jobs/JOB/files",
];

test("axe finds nothing on any screen, in both themes; no screen is wider than a phone", async () => {
  const job = await server.submit(PROGRAM('echo one; echo "shoal.metric {\\"loss\\": 1}"'));
  for (const colorScheme of ["light", "dark"]) {
    const page = await openPage(browser, server, {
      colorScheme,
      viewport: { width: 360, height: 740 },
    });
    await signIn(page, server, `/jobs/${job.id}`);
    await sees(page, ".state", "succeeded");
    for (const screen of SCREENS) {
      await page.goto(server.url + screen.replace("JOB", job.id));
      await page.locator("main h1").first().waitFor();
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      assert.deepEqual(
        violations.map((one) => `${screen} ${colorScheme}: ${one.id}: ${one.nodes[0].html}`),
        [],
      );
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 360, `${screen} is ${width} pixels wide`);
    }
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

test("in Chinese, every name of the navigation is", async () => {
  const page = await openPage(browser, server, { locale: "zh-CN" });
  await signIn(page, server);
  await page.getByRole("heading", { name: "作业" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh");
  await page.context().close();
});

test("no other page may frame it, run in it or send for it", async () => {
  const reply = await fetch(server.url);
  const policy = reply.headers.get("content-security-policy");
  for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
    assert.ok(policy.includes(part), policy);
  assert.ok(!policy.includes("unsafe"));
  const html = await reply.text();
  assert.ok(!/<script(?![^>]*src=)/.test(html), html);
  const forged = await fetch(`${server.url}/api/v1/jobs`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${server.token}`,
      Origin: "http://evil.example",
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ file: PROGRAM("exit 0") }),
  });
  assert.equal(forged.status, 403);
});
