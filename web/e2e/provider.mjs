// An OpenID Connect provider that signs everybody in at once, by the code flow with PKCE.
import { createHash, createSign, generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";

const CLIENT = "shoal";

export class Provider {
  constructor(user) {
    this.user = user;
    this.codes = new Map();
    this.keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
    this.server = createServer((request, response) => void this.answer(request, response));
  }

  async start() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.issuer = `http://127.0.0.1:${this.server.address().port}`;
  }

  end() {
    this.server.close();
    this.server.closeAllConnections();
  }

  async answer(request, response) {
    const url = new URL(request.url, this.issuer);
    if (url.pathname === "/auth") {
      const asked = Object.fromEntries(url.searchParams);
      const code = `code-${this.codes.size}`;
      this.codes.set(code, asked);
      const back = `${asked.redirect_uri}?${new URLSearchParams({ code, state: asked.state })}`;
      response.writeHead(302, { Location: back }).end();
      return;
    }
    let body = "";
    for await (const chunk of request) body += chunk;
    const reply = {
      "/.well-known/openid-configuration": () => this.discovery(),
      "/keys": () => ({
        keys: [
          { ...this.keys.publicKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" },
        ],
      }),
      "/token": () => this.token(Object.fromEntries(new URLSearchParams(body))),
    }[url.pathname]?.();
    response.writeHead(reply ? 200 : 400, { "Content-Type": "application/json" });
    response.end(JSON.stringify(reply ?? { error: "invalid_grant" }));
  }

  discovery() {
    const at = (path) => this.issuer + path;
    return {
      issuer: this.issuer,
      authorization_endpoint: at("/auth"),
      token_endpoint: at("/token"),
      jwks_uri: at("/keys"),
    };
  }

  token(form) {
    const asked = this.codes.get(form.code);
    const challenge = createHash("sha256")
      .update(form.code_verifier ?? "")
      .digest("base64url");
    if (asked?.code_challenge !== challenge || asked.redirect_uri !== form.redirect_uri)
      return undefined;
    this.codes.delete(form.code);
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: this.issuer,
      aud: CLIENT,
      iat: now,
      exp: now + 300,
      nonce: asked.nonce,
      ...this.user,
    };
    const encode = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");
    const text = `${encode({ alg: "RS256", kid: "1", typ: "JWT" })}.${encode(claims)}`;
    const signature = createSign("sha256")
      .update(text)
      .sign(this.keys.privateKey)
      .toString("base64url");
    return { access_token: "unused", token_type: "Bearer", id_token: `${text}.${signature}` };
  }
}
