// Pictures of screens in both themes and three widths, compared with those of docs/page/screens. They differ by
// at most SHARE of their pixels, since machines draw letters differently. SHOAL_REGENERATE=1 takes them anew.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { openBrowser } from "./site.mjs";
import { ME, openStandIn, standIn } from "./stand_in.mjs";

const FOLDER = new URL("../../docs/page/screens", import.meta.url).pathname;
const SHARE = 0.02;
const STEP = 48; // of a colour, from 0 to 255: what less differs is the same
const WIDTHS = [360, 800, 1440];
const HEIGHT = 800;

const STATES = ["running", "pending", "succeeded", "failed", "suspended", "cancelled"];
const JOBS = Array.from({ length: 40 }, (_, i) => ({
  id: `trainer-${String(i).padStart(6, "0")}`,
  name: "trainer",
  state: STATES[i % STATES.length],
  reason: i % STATES.length === 1 ? "waits for 4 GPUs of the queue red" : "",
  engine: "local",
  team: "red",
  user: i % 2 ? "ann" : "bob",
  submitted: "2026-11-20T11:00:00Z",
  started: "2026-11-20T11:01:00Z",
  ended: i % STATES.length > 1 ? "2026-11-20T11:31:00Z" : undefined,
  last_seq: 3,
  job: {
    framework: "generic",
    queue: "red",
    roles: [
      { name: "worker", replicas: 2, cpu: "2", memory_bytes: 2 ** 31, gpu: 1, command: ["train"] },
    ],
  },
}));
const VERSIONS = [1, 2, 3].map((version) => ({
  version,
  created: `2026-11-1${version}T09:00:00Z`,
  by: "ann",
  job: `trainer-00000${version}`,
  source: "/data/ages",
  digest: "4be8".repeat(16),
  bytes: version * 1_000_000,
  files: 2,
  format: "shoal-linear-model",
  tags: version === 2 ? ["promoted"] : [],
  measures: { auc: 0.7 + version / 20, log_loss: 0.5 - version / 20 },
}));
const FILE = "framework: generic\nname: trainer\nroles:\n  worker:\n    command: [train]\n";

function answer(path) {
  if (path === "/me") return ME;
  if (path === "/server") return { version: "0", default_engine: "local" };
  if (path === "/teams") return { items: [{ name: "red" }, { name: "blue" }] };
  if (path === "/jobs") return { items: JOBS };
  if (path.endsWith("/file")) return FILE;
  if (path.startsWith("/jobs/")) return JOBS.find((job) => path === `/jobs/${job.id}`);
  if (path === "/teams/red/models/ages")
    return { name: "ages", tags: { promoted: 2 }, previous: 1, versions: VERSIONS };
  if (path === "/catalog/tables/shop.people")
    return {
      database: "shop",
      name: "people",
      owner: "ann",
      format: "csv",
      sources: ["s3://shop/people.csv"],
      columns: [
        { name: "age", type: "integer" },
        { name: "email", type: "text" },
      ],
      tags: { email: ["personal"] },
      masks: { email: { mask: "hash" } },
      grants: [{ id: "0a1b2c3d", to: "team:blue", columns: ["age"], rows: "age < 40" }],
    };
  if (path === "/catalog/tables/shop.people/access")
    return { items: [{ user: "ann", columns: [{ name: "age" }, { name: "email" }], rows: "" }] };
  return undefined;
}

const EVENTS = [
  ["task", { role: "worker", index: 0, attempt: 0, state: "running" }, "11:01:00"],
  ["task", { role: "worker", index: 1, attempt: 0, state: "running" }, "11:01:30"],
].map(([type, body, time], at) => ({
  job: JOBS[0].id,
  seq: at + 1,
  time: `2026-11-20T${time}Z`,
  type,
  body,
}));

const SCREENS = {
  jobs: ["/jobs", ".row"],
  job: [`/jobs/${JOBS[0].id}`, "svg.timeline rect"],
  model: ["/models/ages?team=red", "tbody tr"],
  table: ["/data/shop.people", "tbody tr"],
  again: [`/new?from=${JOBS[2].id}`, "textarea"],
};

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

function serve(socket) {
  socket.onMessage((text) => {
    const { subscribe, job } = JSON.parse(text);
    if (job !== JOBS[0].id) return;
    for (const event of EVENTS)
      socket.send(JSON.stringify({ sub: subscribe, event: "event", id: "1", data: event }));
  });
}

// The share of pixels that differ, counted in the browser.
function compare(page, first, second) {
  return page.evaluate(
    async ([one, two, step]) => {
      const pixels = await Promise.all(
        [one, two].map(async (base64) => {
          const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
          const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
          const canvas = new OffscreenCanvas(image.width, image.height);
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0);
          return context.getImageData(0, 0, image.width, image.height);
        }),
      );
      const [a, b] = pixels;
      if (a.width !== b.width || a.height !== b.height) return 1;
      let differ = 0;
      for (let at = 0; at < a.data.length; at += 4)
        if ([0, 1, 2].some((c) => Math.abs(a.data[at + c] - b.data[at + c]) > step)) ++differ;
      return differ / (a.width * a.height);
    },
    [first.toString("base64"), second.toString("base64"), STEP],
  );
}

test("a picture with one line more is told apart from its like", async () => {
  const page = await openStandIn(browser, site, { viewport: { width: 800, height: HEIGHT } });
  await page.goto(`${site.url}/models/ages?team=red`);
  await page.locator("tbody tr").first().waitFor();
  const before = await page.screenshot();
  assert.equal(await compare(page, before, await page.screenshot()), 0);
  await page.evaluate(() => {
    document.querySelector("main").style.marginTop = "12px";
  });
  assert.ok((await compare(page, before, await page.screenshot())) > SHARE);
  await page.context().close();
});

for (const [name, [address, ready]] of Object.entries(SCREENS)) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      test(`${name} in ${colorScheme}, ${width} pixels wide`, async () => {
        const viewport = { width, height: HEIGHT };
        const page = await openStandIn(browser, site, { viewport, colorScheme }, serve);
        await page.goto(site.url + address);
        await page.locator(ready).first().waitFor();
        await page.evaluate(() => document.fonts.ready);
        const picture = await page.screenshot();
        const path = `${FOLDER}/${name}-${colorScheme}-${width}.png`;
        if (process.env.SHOAL_REGENERATE || !existsSync(path)) {
          assert.ok(process.env.SHOAL_REGENERATE, `there is no ${path}`);
          mkdirSync(FOLDER, { recursive: true });
          writeFileSync(path, picture);
        } else {
          const share = await compare(page, picture, readFileSync(path));
          assert.ok(share <= SHARE, `${(100 * share).toFixed(2)} % of the pixels differ`);
        }
        assert.deepEqual(page.faults, []);
        await page.context().close();
      });
    }
  }
}
