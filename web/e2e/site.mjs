// A real server with a browser before it. No sleeps: everything is awaited on the page.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const shoal = process.env.SHOAL_BIN ?? new URL("../../build/dev/shoal", import.meta.url).pathname;

export class Server {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "shoal-page-"));
    this.port = 0;
  }

  // Ends when the server answers. A second start takes the same state and port.
  async start(...more) {
    const listen = `127.0.0.1:${this.port}`;
    this.process = spawn(
      shoal,
      ["server", "--state", join(this.dir, "state"), "--listen", listen, ...more],
      {
        env: { PATH: process.env.PATH, HOME: this.dir, SHOAL_HOME: join(this.dir, "home") },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let said = "";
    this.url = await new Promise((resolve, reject) => {
      this.process.stdout.on("data", (chunk) => {
        said += chunk;
        const ready = said.match(/ready on (http:\/\/127\.0\.0\.1:(\d+))/);
        if (!ready) return;
        this.port = Number(ready[2]);
        resolve(ready[1]);
      });
      this.process.once("exit", () => reject(new Error(`the server did not start: ${said}`)));
    });
    this.process.stderr.resume();
    this.token = readFileSync(join(this.dir, "state", "administrator.token"), "utf8").trim();
  }

  async stop() {
    if (!this.process || this.process.exitCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
  }

  async end() {
    const jobs = await this.ask("GET", "/jobs?limit=1000").catch(() => ({ items: [] }));
    for (const job of jobs.items)
      await this.ask("POST", `/jobs/${job.id}/stop`, {}).catch(() => {});
    await this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async ask(method, path, body) {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${this.token}`,
        ...(body ? { "Content-Type": "application/json" } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  submit(file) {
    return this.ask("POST", "/jobs", { file });
  }
}

export async function openBrowser() {
  return chromium.launch({
    executablePath: process.env.SHOAL_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

// A page that remembers what went wrong in it: errors of scripts, of the console, and requests to others.
export async function openPage(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") page.faults.push(message.text());
  });
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (origin !== server.url && !request.url().startsWith("blob:"))
      page.faults.push(`a request to ${request.url()}`);
  });
  return page;
}

export async function signIn(page, server, address = "/jobs") {
  await page.goto(`${server.url}${address}#token=${server.token}`);
  await page.getByRole("navigation").waitFor();
}
