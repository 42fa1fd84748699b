// A server of fixed answers in place of a real one, for pictures that are the same at every run and
// for hours that pass in seconds.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";

const dist = new URL("../dist", import.meta.url).pathname;
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

// `answer(path, query)` gives the JSON of a GET below /api/v1, or undefined for 404.
export async function standIn(answer) {
  const server = createServer((request, reply) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname.startsWith("/api/v1")) {
      const value = answer(url.pathname.slice("/api/v1".length), url.searchParams);
      const text = typeof value === "string" ? value : JSON.stringify(value ?? { detail: "none" });
      reply.writeHead(value === undefined ? 404 : 200, { "Content-Type": "application/json" });
      reply.end(text);
      return;
    }
    const file = /^\/(assets\/|icon\.svg)/.test(url.pathname) ? url.pathname : "/index.html";
    reply.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" });
    reply.end(readFileSync(dist + file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

export const ME = {
  user: "ann",
  administrator: true,
  teams: { red: "operator" },
  scopes: ["jobs:read", "jobs:write", "data:read", "people:read", "people:write", "audit:read"],
  token: "000000000001",
};

// Opens a page that is signed in, at a fixed time, with a WebSocket that `connected(socket)` serves.
export async function openStandIn(browser, site, options, connected = () => {}) {
  const context = await browser.newContext({
    timezoneId: "UTC",
    locale: "en-US",
    reducedMotion: "reduce",
    ...options,
  });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  await page.clock.install({ time: new Date("2026-11-20T12:00:00Z") });
  await page.routeWebSocket(/watch$/, connected);
  await page.goto(`${site.url}/jobs#token=shoal_000000000001_stand-in`);
  await page.getByRole("navigation").waitFor();
  return page;
}
