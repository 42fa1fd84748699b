// Sign-in at an OpenID Connect provider, in a browser.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Provider } from "./provider.mjs";
import { openBrowser, Server } from "./site.mjs";

const server = new Server();
const provider = new Provider({ sub: "4f1c", preferred_username: "ada", groups: ["ml"] });
let browser;

before(async () => {
  await provider.start();
  await server.start();
  await server.stop(); // its port is known now
  const config = join(server.dir, "oidc.json");
  writeFileSync(
    config,
    JSON.stringify({
      issuer: provider.issuer,
      client_id: "shoal",
      teams: { ml: { team: "default", role: "member" } },
      redirect_uris: [`${server.url}/signed-in`],
    }),
  );
  await server.start("--oidc", config);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await server.end();
  provider.end();
});

test("the browser goes to the provider and comes back signed in", async () => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(server.url);
  await page.getByRole("button", { name: `Sign in at ${new URL(provider.issuer).host}` }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  assert.equal(page.url(), `${server.url}/jobs`);
  await page.getByRole("link", { name: "ada" }).click();
  await page.getByText("default: member").waitFor();
  await page.context().close();
});

test("a code that this tab did not ask for signs nobody in", async () => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${server.url}/signed-in?code=stolen&state=forged`);
  await page.getByRole("alert").getByText("was not begun in this tab").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  assert.equal(page.url(), `${server.url}/jobs`);
  await page.goto(`${server.url}/signed-in?error=access_denied`);
  await page.getByRole("alert").getByText("access_denied").waitFor();
  await page.context().close();
});
