"""A double of an OpenID Connect provider: discovery, keys, device authorization (RFC 8628), authorization code with PKCE (RFC 7636).

Its tokens are made by PyJWT, so that what the server accepts and refuses is judged by another implementation. `forge` changes the
next ID token. Run it in the interpreter of the distribution, which has PyJWT."""
import base64
import hashlib
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Provider:
    def __init__(self, client_id="shoal", client_secret="s3cret & more", interval=1):
        self.client_id, self.client_secret, self.interval = client_id, client_secret, interval
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.keys = {"rsa-1": self.rsa, "ec-1": self.ec}
        self.user = {"sub": "4f1c", "preferred_username": "ada", "groups": ["ml-research"]}
        self.forge = None  # a function: claims → the text of the token
        self.devices, self.codes, self.asked, self.device_error = {}, {}, [], None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self.server.server_port}/realms/ml"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def claims(self, **changes):
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.client_id, "iat": now, "exp": now + 300, **self.user, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def sign(self, claims, key="rsa-1", **headers):
        algorithm = "ES256" if key.startswith("ec") else "RS256"
        return jwt.encode(claims, self.keys[key], algorithm=algorithm, headers={"kid": key, **headers})

    def agree(self, user_code):
        for device in self.devices.values():
            if device["user_code"] == user_code:
                device["agreed"] = True

    def visit(self, url):
        """What a browser does with an authorization request: the parameters with which it comes back."""
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256", asked
        assert asked["client_id"] == self.client_id and "openid" in asked["scope"].split(), asked
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def jwks(self):
        def rsa_jwk(key, name):
            return json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) | {"kid": name, "use": "sig"}
        return {"keys": [(ec_jwk if name.startswith("ec") else rsa_jwk)(key, name) for name, key in self.keys.items()]}

    def discovery(self):
        base = self.issuer
        return {"issuer": base, "authorization_endpoint": base + "/auth", "token_endpoint": base + "/token",
                "device_authorization_endpoint": base + "/device", "jwks_uri": base + "/keys"}

    def device(self, form):
        number = len(self.devices)
        code = {"device_code": f"device-{number}", "user_code": f"WDJB-{number:04}",
                "verification_uri": self.issuer + "/enter", "expires_in": 60, "interval": self.interval}
        self.devices[code["device_code"]] = {"user_code": code["user_code"], "agreed": False, "last": 0, "scope": form["scope"]}
        return 200, code

    def token(self, form):
        if (form.get("client_id"), form.get("client_secret")) != (self.client_id, self.client_secret):
            return 401, {"error": "invalid_client"}
        if form["grant_type"] == DEVICE_GRANT:
            device = self.devices.get(form["device_code"])
            if device is None:
                return 400, {"error": "invalid_grant"}
            if self.device_error:
                return 400, {"error": self.device_error}
            if not device["agreed"]:
                return 400, {"error": "authorization_pending"}
            del self.devices[form["device_code"]]
            return 200, self.reply({})
        asked = self.codes.pop(form["code"], None)
        if asked is None:
            return 400, {"error": "invalid_grant", "error_description": "the code is unknown or used"}
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if digest != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": "PKCE"}
        return 200, self.reply({"nonce": asked["nonce"]})

    def reply(self, more):
        claims = self.claims(**more)
        token = self.forge(claims) if self.forge else self.sign(claims)
        return {"access_token": "unused", "token_type": "Bearer", **({"id_token": token} if token is not None else {})}

    def _handler(provider):  # pylint: disable=no-self-argument
        class Handler(BaseHTTPRequestHandler):
            def answer(self, status, body):
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self):
                path = self.path.removeprefix("/realms/ml")
                provider.asked.append(path)
                known = {"/.well-known/openid-configuration": provider.discovery, "/keys": provider.jwks}
                self.answer(200, known[path]()) if path in known else self.answer(404, {})

            def do_POST(self):
                path = self.path.removeprefix("/realms/ml")
                provider.asked.append(path)
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self.answer(*{"/device": provider.device, "/token": provider.token}[path](form))

            def log_message(self, *_):
                pass
        return Handler


def number(value, size=32):
    return base64.urlsafe_b64encode(value.to_bytes(size, "big")).rstrip(b"=").decode()


def ec_jwk(key, name):
    point = key.public_key().public_numbers()
    return {"kty": "EC", "crv": "P-256", "x": number(point.x), "y": number(point.y), "kid": name, "use": "sig", "alg": "ES256"}
