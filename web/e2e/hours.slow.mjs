// What the page holds after eight hours of a live job: lines of logs, events and curves as they come, with the
// clock set forward.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser } from "./site.mjs";
import { ME, openStandIn, standIn } from "./stand_in.mjs";

const HOURS = 8;
const STEP_SECONDS = 10; // of simulated time between two messages
const MOST_BYTES = 150e6;
const JOB = {
  id: "trainer-000001",
  name: "trainer",
  state: "running",
  reason: "",
  engine: "local",
  team: "red",
  user: "ann",
  submitted: "2026-11-20T12:00:00Z",
  started: "2026-11-20T12:00:00Z",
  last_seq: 1,
  job: { framework: "generic", roles: [] },
};
const NAMES = ["loss/worker-0", "loss/worker-1", "words_per_second/worker-0"];

function answer(path, query) {
  if (path === "/me") return ME;
  if (path === "/server") return { version: "0", default_engine: "local" };
  if (path === "/jobs") return { items: [JOB] };
  if (path === `/jobs/${JOB.id}`) return JOB;
  if (path.endsWith("/logs"))
    return { items: [0, 1].map((index) => ({ role: "worker", index, attempt: 0, bytes: 0 })) };
  if (path.includes("/logs/")) return "";
  if (path.endsWith("/series"))
    return { items: NAMES.map((name) => ({ name, points: 1e5, first_ms: 0, last_ms: 3e7 })) };
  if (path.includes("/series/")) {
    const count = Number(query.get("points"));
    const values = Array.from({ length: count }, (_, i) => 1 / (1 + i));
    const time_ms = values.map((_, i) => 1000 * i);
    return { name: path, time_ms, mean: values, min: values, max: values };
  }
  return undefined;
}

let site;
let browser;
before(async () => {
  site = await standIn(answer);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.close();
});

async function heapOf(page, session) {
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize;
}

// A tab, what shows that it is there, and what shows that it has what came last.
for (const [tab, ready, last] of [
  ["logs", ".log", `.line:has-text("step ${(HOURS * 3600) / STEP_SECONDS} loss")`],
  ["curves", ".chart canvas", ".chart canvas"],
  ["events", "main table", `td:has-text("checkpoint ${(HOURS * 3600) / STEP_SECONDS}")`],
  ["", "dl.facts", `dd:has-text("ann")`],
]) {
  test(`${HOURS} hours on ${tab || "overview"}`, async (context) => {
    const subscriptions = new Map();
    let socket;
    const page = await openStandIn(browser, site, {}, (opened) => {
      socket = opened;
      opened.onMessage((text) => {
        const { subscribe, unsubscribe, ...fields } = JSON.parse(text);
        if (subscribe) subscriptions.set(subscribe, fields);
        else subscriptions.delete(unsubscribe);
      });
    });
    await page.goto(`${site.url}/jobs/${JOB.id}${tab ? `/${tab}` : ""}`);
    await page.locator(ready).first().waitFor({ state: "attached" });
    const session = await page.context().newCDPSession(page);
    const turns = (HOURS * 3600) / STEP_SECONDS;
    const heaps = [];
    for (let turn = 1; turn <= turns; ++turn) {
      for (const [sub, fields] of subscriptions) {
        if (fields.logs)
          socket.send(
            JSON.stringify({
              sub,
              event: "log",
              id: String(turn),
              data: {
                role: "worker",
                index: turn % 2,
                attempt: 0,
                text: `step ${turn} loss ${1 / turn}\n`.repeat(STEP_SECONDS),
              },
            }),
          );
        else if (turn % 6 === 0)
          socket.send(
            JSON.stringify({
              sub,
              event: "event",
              id: String(turn),
              data: {
                job: JOB.id,
                seq: turn,
                time: new Date(Date.UTC(2026, 10, 20, 12) + turn * 1e4).toISOString(),
                type: "note",
                body: { text: `checkpoint ${turn}` },
              },
            }),
          );
      }
      if (turn % 60 === 0) await page.clock.fastForward(60 * STEP_SECONDS * 1000);
      if (turn % (turns / 8) === 0) heaps.push(await heapOf(page, session));
    }
    context.diagnostic(`heap in MB by hour: ${heaps.map((one) => (one / 1e6).toFixed(1))}`);
    await page.clock.runFor(STEP_SECONDS * 1000); // what is shown waits for a timer
    heaps[7] = await heapOf(page, session);
    await page.locator(last).last().waitFor({ state: "attached" });
    assert.ok(Math.max(...heaps) <= MOST_BYTES, heaps.join());
    // Flat: the last hours add no more than what they have brought.
    assert.ok(heaps[7] - heaps[3] <= 10e6, heaps.join());
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}
