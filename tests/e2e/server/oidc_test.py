"""Sign-in by an OpenID Connect provider: the command's device flow, a page's code flow, and forged tokens of each kind."""
import base64
import hashlib
import hmac
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_harness import Server, poll_until, said  # noqa: E402  pylint: disable=wrong-import-position

try:
    import jwt
    from oidc_provider import Provider, ec_jwk, number
except ImportError:
    jwt = None

PAGE = "https://page.example/back"


def part(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


@unittest.skipIf(jwt is None, "needs PyJWT (python3-jwt), the other implementation")
class OidcTest(unittest.TestCase):
    def setUp(self):
        self.provider = Provider()
        self.addCleanup(self.provider.close)
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        with open(self.server.home.path("client.secret"), "w", encoding="utf-8") as f:
            f.write(self.provider.client_secret + "\n")
        self.start()
        self.server.post("/teams", {"name": "research"})

    def start(self, **fields):
        config = {"issuer": self.provider.issuer, "client_id": "shoal", "client_secret_file": "client.secret",
                  "teams": {"ml-research": {"team": "research", "role": "member"},
                            "ml-leads": [{"team": "research", "role": "operator"}, {"team": "absent"}]},
                  "administrators": ["ml-admins"], "redirect_uris": [PAGE], **fields}
        path = self.server.home.path("oidc.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.server.options = ("--oidc", path)
        self.server.start()

    def ask(self, target, body=None):
        return self.server.request("POST", "/sign-in/" + target, body or {}, None)

    def device(self):
        """A sign-in by device flow to its end: the server's last reply."""
        begun = self.ask("device").json
        self.provider.agree(begun["user_code"])
        replies = []
        poll_until(lambda: replies.append(self.ask("device/token", {"device": begun["device"]})) or replies[-1].status != 202, 30, 0.2)
        return replies[-1]

    def code(self, **changes):
        begun = self.ask("code", {"redirect_uri": PAGE})
        self.assertEqual(begun.status, 201, begun)
        back = self.provider.visit(begun.json["url"])
        return self.ask("code/token", {**back, "binding": begun.json["binding"], **changes})

    def test_device_flow(self):
        ways = self.server.get("/sign-in", token=None).json
        self.assertEqual(ways, {"methods": ["token", "oidc"], "issuer": self.provider.issuer})
        begun = self.ask("device")
        self.assertEqual(begun.status, 201, begun)
        again = self.ask("device/token", {"device": begun.json["device"]})
        self.assertEqual((again.status, again.json), (202, {"interval": 1}))
        with self.subTest("the provider is not asked more often than it says"):
            before = self.provider.asked.count("/token")
            for _ in range(5):
                self.ask("device/token", {"device": begun.json["device"]})
            self.assertLessEqual(self.provider.asked.count("/token"), before + 1)
        reply = self.device()
        self.assertEqual(reply.status, 201, reply)
        me = self.server.get("/me", reply.json["token"]).json
        self.assertEqual((me["user"], me["administrator"], me["teams"]), ("ada", False, {"research": "member"}))
        self.assertIn("expires", reply.json)
        entry = self.server.get("/audit?action=finishDeviceSignIn").json["items"][-1]
        self.assertEqual(entry["user"], "ada")
        with self.subTest("tokens that it makes do not outlive it"):
            token = reply.json["token"]
            longer = self.server.post("/tokens", {"name": "forever", "seconds": 10 * 365 * 86400}, token)
            self.assertEqual(longer.status, 403, longer)
            self.assertIn("a token of a sign-in cannot make one that is valid longer", longer.detail)
            child = self.server.post("/tokens", {"name": "child"}, token)
            self.assertEqual(child.status, 201, child)
            self.assertLessEqual(child.json["expires"][:19], reply.json["expires"][:19])
            grandchild = self.server.post("/tokens", {"seconds": 10 * 365 * 86400}, child.json["token"])
            self.assertEqual(grandchild.status, 403, grandchild)
            self.assertEqual(self.server.post("/tokens", {"user": "ada", "seconds": 10 * 365 * 86400}).status, 201)
        with self.subTest("groups decide anew at each sign-in"):
            self.provider.user["groups"] = ["ml-leads", "ml-admins"]
            me = self.server.get("/me", self.device().json["token"]).json
            self.assertEqual((me["administrator"], me["teams"]), (True, {"research": "operator"}))
            self.provider.user["groups"] = []
            me = self.server.get("/me", self.device().json["token"]).json
            self.assertEqual((me["administrator"], me["teams"]), (False, {}))
        with self.subTest("a disabled user"):
            self.server.request("PATCH", "/users/ada", {"disabled": True})
            self.assertEqual(self.device().status, 403)

    def test_command(self):
        process = self.server.home.start("login", self.server.url, "--oidc", env={"XDG_CONFIG_HOME": self.server.home.path("config")})
        self.assertTrue(poll_until(lambda: self.provider.devices, 30))
        self.provider.agree(next(iter(self.provider.devices.values()))["user_code"])
        self.assertEqual(process.wait(60), 0, said(process))
        self.assertIn("WDJB-0000", said(process))
        self.assertIn("ada is signed in", said(process))

    def test_refused_and_expired_at_the_provider(self):
        for error, status in (("access_denied", 403), ("expired_token", 504), ("invalid_grant", 401)):
            with self.subTest(error):
                self.provider.device_error = error
                reply = self.device()
                self.assertEqual(reply.status, status, reply)
        self.provider.device_error = "slow_down"
        begun = self.ask("device").json
        waits = []
        poll_until(lambda: waits.append(self.ask("device/token", {"device": begun["device"]}).json["interval"]) or waits[-1] > 1, 30, 0.2)
        self.assertEqual(waits[-1], 6)

    def test_code_flow(self):
        reply = self.code()
        self.assertEqual(reply.status, 201, reply)
        self.assertEqual(self.server.get("/me", reply.json["token"]).json["user"], "ada")
        with self.subTest("a state is used once"):
            begun = self.ask("code", {"redirect_uri": PAGE}).json
            body = {**self.provider.visit(begun["url"]), "binding": begun["binding"]}
            self.assertEqual(self.ask("code/token", body).status, 201)
            self.assertEqual(self.ask("code/token", body).status, 404)
        with self.subTest("another page"):
            self.assertEqual(self.code(binding="0" * 64).status, 403)
        with self.subTest("another redirect"):
            for uri in ("https://evil.example/back", PAGE + "/x", PAGE + "?a=b", "javascript:alert(1)"):
                self.assertEqual(self.ask("code", {"redirect_uri": uri}).status, 403, uri)
        with self.subTest("a state of another flow"):
            begun = self.ask("device").json
            self.assertEqual(self.ask("code/token", {"state": begun["device"], "binding": "x", "code": "y"}).status, 404)
        with self.subTest("a code of another sign-in: its nonce and verifier are not this one's"):
            first, second = (self.ask("code", {"redirect_uri": PAGE}).json for _ in range(2))
            stolen = self.provider.visit(first["url"])["code"]
            own = self.provider.visit(second["url"])
            self.assertEqual(self.ask("code/token", {**own, "code": stolen, "binding": second["binding"]}).status, 401)
        with self.subTest("a replayed ID token"):
            kept = []
            self.provider.forge = lambda claims: kept.append(self.provider.sign(claims)) or kept[0]
            self.assertEqual(self.code().status, 201)
            reply = self.code()
            self.assertEqual(reply.status, 401, reply)
            self.assertIn("nonce", reply.detail)

    def refuse(self, name, forge, word=""):
        with self.subTest(name):
            self.provider.forge = forge
            reply = self.code()
            self.assertEqual(reply.status, 401, (name, reply))
            self.assertIn(word, reply.detail)

    def test_forged_tokens(self):
        provider, now = self.provider, int(time.time())
        for key in ("rsa-1", "ec-1"):
            provider.forge = lambda claims, key=key: provider.sign(claims, key)
            self.assertEqual(self.code().status, 201, key)
        with self.subTest("PyJWT agrees"):
            token = provider.sign(provider.claims(), "ec-1")
            self.assertEqual(jwt.decode(token, provider.ec.public_key(), ["ES256"], audience="shoal")["sub"], "4f1c")
        public = json.dumps(provider.jwks()["keys"][0]).encode()

        def confused(claims):
            text = part({"alg": "HS256", "kid": "rsa-1"}) + "." + part(claims)
            return text + "." + part(hmac.new(public, text.encode(), hashlib.sha256).digest())

        def changed(claims):
            header, _, signature = provider.sign(claims).split(".")
            return f"{header}.{part({**claims, 'preferred_username': 'root'})}.{signature}"

        def with_key_inside(claims):
            own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(provider.other.public_key()))
            return jwt.encode(claims, provider.other, algorithm="RS256", headers={"kid": "rsa-1", "jwk": own})

        self.refuse("none", lambda c: part({"alg": "none"}) + "." + part(c) + ".", "RS256 or ES256")
        self.refuse("none, signed", lambda c: part({"alg": "None", "kid": "rsa-1"}) + "." + part(c) + ".AAAA", "RS256 or ES256")
        self.refuse("a public key as a password", confused, "RS256 or ES256")
        self.refuse("another key", lambda c: jwt.encode(c, provider.other, algorithm="RS256", headers={"kid": "rsa-1"}), "not signed")
        self.refuse("its own key in the header", with_key_inside, "not signed")
        self.refuse("an unknown key", lambda c: jwt.encode(c, provider.other, algorithm="RS256", headers={"kid": "x"}), "no such key")
        self.refuse("the other key's name", lambda c: provider.sign(c, "rsa-1", kid="ec-1"), "no such key")
        self.refuse("another algorithm", lambda c: jwt.encode(c, provider.rsa, algorithm="RS512", headers={"kid": "rsa-1"}), "RS512")
        self.refuse("changed claims", changed, "not signed")
        self.refuse("no signature", lambda c: ".".join(provider.sign(c).split(".")[:2]) + ".")
        self.refuse("an empty ES256 signature", lambda c: part({"alg": "ES256", "kid": "ec-1"}) + "." + part(c) + "." + part(b"\0" * 64))
        self.refuse("critical extensions", lambda c: provider.sign(c, crit=["b64"], b64=False), "critical")
        self.refuse("two parts", lambda c: "a.b", "HEADER.CLAIMS.SIGNATURE")
        self.refuse("five parts", lambda c: "a.b.c.d.e", "HEADER.CLAIMS.SIGNATURE")
        self.refuse("padding", lambda c: provider.sign(c) + "==", "base64url")
        self.refuse("huge", lambda c: provider.sign({**c, "x": "y" * 70_000}), "64 KiB")
        self.refuse("no token", lambda c: None, "openid")
        for name, changes, word in (
                ("issuer", {"iss": "http://evil.example"}, "iss"), ("issuer with a slash", {"iss": provider.issuer + "/"}, "iss"),
                ("no issuer", {"iss": None}, "iss"), ("audience", {"aud": "another"}, "aud"), ("no audience", {"aud": None}, "aud"),
                ("audience list without", {"aud": ["a", "b"]}, "aud"), ("several without azp", {"aud": ["shoal", "b"]}, "azp"),
                ("another azp", {"azp": "b"}, "azp"), ("expired", {"exp": now - 120}, "exp"), ("never expires", {"exp": None}, "exp"),
                ("expires as text", {"exp": str(now + 300)}, "exp"), ("issued long ago", {"iat": now - 86400}, "iat"),
                ("issued tomorrow", {"iat": now + 86400, "exp": now + 90000}, "iat"), ("not yet", {"nbf": now + 600}, "nbf"),
                ("no subject", {"sub": None}, "sub"), ("an empty subject", {"sub": ""}, "sub"), ("a number as subject", {"sub": 7}, "sub")):
            self.refuse(name, lambda c, changes=changes: provider.sign({k: v for k, v in {**c, **changes}.items() if v is not None}), word)
        provider.forge = lambda c: provider.sign({**c, "aud": ["shoal", "b"], "azp": "shoal"})
        self.assertEqual(self.code().status, 201)

    def test_changed_keys(self):
        self.assertEqual(self.device().status, 201)
        before = self.provider.asked.count("/keys")
        self.provider.forge = lambda c: jwt.encode(c, self.provider.other, algorithm="RS256", headers={"kid": "rsa-2"})
        for _ in range(3):
            self.assertEqual(self.code().status, 401)
        self.assertLessEqual(self.provider.asked.count("/keys"), before + 1)

    def test_users(self):
        for claims, word in (({"preferred_username": "admin"}, "joins the two"), ({"preferred_username": "../x"}, "1 to 64"),
                             ({"preferred_username": "<b>"}, "1 to 64"), ({"preferred_username": None}, "no claim"),
                             ({"preferred_username": ["ada"]}, "no claim"), ({"preferred_username": "ada@evil.example"}, "domain"),
                             ({"preferred_username": "x" * 65}, "1 to 64")):
            with self.subTest(str(claims)):
                self.provider.user = {"sub": "9", "preferred_username": "ada", **claims}
                reply = self.code()
                self.assertEqual(reply.status, 403, reply)
                self.assertIn(word, reply.detail)
        self.provider.user = {"sub": "1", "preferred_username": "Ada"}
        self.assertEqual(self.server.get("/me", self.code().json["token"]).json["user"], "ada")
        with self.subTest("the name goes to another person"):
            self.provider.user["sub"] = "2"
            self.assertEqual(self.code().status, 403)
        with self.subTest("the person gets another name"):
            self.provider.user = {"sub": "1", "preferred_username": "ada-lovelace"}
            self.assertEqual(self.server.get("/me", self.code().json["token"]).json["user"], "ada")
        with self.subTest("joined by an administrator"):
            self.server.make_user("otto")
            self.provider.user = {"sub": "3", "preferred_username": "otto"}
            self.assertEqual(self.code().status, 403)
            self.server.request("PATCH", "/users/otto", {"subject": self.provider.issuer + " 3"})
            self.assertEqual(self.code().status, 201)

    def test_addresses_and_domains(self):
        self.server.stop()
        self.start(user_claim="email", domain="ml.example")
        for claims, status in (({"email": "eva@ml.example", "email_verified": True}, 201),
                               ({"email": "eva@ml.example"}, 403), ({"email": "eva@ml.example", "email_verified": False}, 403),
                               ({"email": "eva@ml.example.evil.example", "email_verified": True}, 403),
                               ({"email": "eva@evil.example", "email_verified": True}, 403),
                               ({"email": "a@b@ml.example", "email_verified": True}, 403)):
            self.provider.user = {"sub": "7", **claims}
            self.assertEqual(self.code().status, status, claims)

    def test_limits(self):
        replies = [self.ask("code", {"redirect_uri": PAGE}).status for _ in range(25)]
        self.assertEqual(replies.count(201), 20, replies)
        self.assertEqual(set(replies), {201, 429}, replies)
        self.assertEqual(self.ask("device/token", {"device": "0" * 64}).status, 404)

    def test_a_provider_that_is_another_or_gone(self):
        self.provider.issuer += "x"
        self.assertEqual(self.ask("device").status, 409)
        self.provider.close()
        self.assertEqual(self.ask("device").status, 503)

    def test_configurations(self):
        self.server.stop()
        path = self.server.home.path("bad.json")
        good = {"issuer": "https://id.example", "client_id": "a"}
        for change, word in (({"issuer": "http://id.example"}, "expected https"), ({"issuer": None}, "issuer"),
                             ({"client_id": ""}, "client_id"), ({"scopes": ["email"]}, "openid"), ({"more": 1}, "no field"),
                             ({"teams": {"g": {"team": "A B"}}}, "team"), ({"teams": {"g": {"team": "a", "role": "boss"}}}, "boss"),
                             ({"lifetime": 1}, "lifetime"), ({"client_secret_file": "none"}, "client_secret_file")):
            with open(path, "w", encoding="utf-8") as f:
                json.dump({k: v for k, v in {**good, **change}.items() if v is not None}, f)
            code, _, err = self.server.home.run("server", "--state", self.server.state, "--listen", "127.0.0.1:0", "--oidc", path)
            self.assertNotEqual(code, 0)
            self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
