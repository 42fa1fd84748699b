"""Which server a client talks to, and with which token: the rules of the command `shoal` (docs/server.md)."""
from __future__ import annotations

import json
import os
import re
import stat
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from ._errors import ConfigurationError

_MAX_FILE = 1 << 20


@dataclass(frozen=True)
class Login:
    """How to reach a server. `url`: one, or those of several servers of one store, separated by commas. `fingerprint`: SHA-256 of its certificate in hex; empty: authorities decide."""

    url: str
    token: str = field(repr=False)
    fingerprint: str = ""


def login_file() -> Optional[str]:
    """The file that `shoal login` writes; None without XDG_CONFIG_HOME and HOME."""
    config = os.environ.get("XDG_CONFIG_HOME")
    if config:
        return os.path.join(config, "shoal", "login.json")
    home = os.environ.get("HOME")
    return os.path.join(home, ".config", "shoal", "login.json") if home else None


def read_logins(path: Optional[str]) -> Dict[str, Any]:
    """The content of the login file; empty if there is none. Refuses one that other users may read."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as f:
            if stat.S_IMODE(os.fstat(f.fileno()).st_mode) & 0o077:
                raise ConfigurationError(f"{path} holds tokens, and other users may read it; `chmod 600` it, and `shoal login` again "
                                         "if they may have read it")
            data = f.read(_MAX_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    try:
        parsed = json.loads(data) if len(data) <= _MAX_FILE else None
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ConfigurationError(f"{path}: got no JSON object of at most 1 MiB; remove it and `shoal login` again")
    return parsed


def normalize_url(text: str) -> str:
    """"https://host:7117" of "HTTPS://Host:7117/"; http for the loopback and https otherwise if no scheme is given."""
    url = text.strip()
    if "://" not in url:
        loopback = url.startswith(("localhost", "127.", "[::1]"))
        url = ("http://" if loopback else "https://") + url
    url = url.rstrip("/")
    head, slash, rest = url.partition("://")[2].partition("/")
    url = url.partition("://")[0].lower() + "://" + head.lower() + slash + rest
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or re.search(r"[\x00-\x20\x7f]", url):
        raise ConfigurationError(f"the server {text!r}: expected a URL such as https://ml.example:7117")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("the server: got a user in the URL, expected a token by `shoal login` or SHOAL_TOKEN")
    return url


def normalize_urls(text: str) -> str:
    """A list of URLs, separated by commas, of which each is normalized."""
    return ",".join(normalize_url(one) for one in text.split(","))


def normalize_fingerprint(text: str) -> str:
    digits = re.sub(r"[: \n]", "", text.lower())
    digits = digits[len("sha256"):] if digits.startswith("sha256") else digits
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise ConfigurationError(f"got the fingerprint {text[:100]!r}, expected the 64 hex digits that `shoal server` prints")
    return digits


def choose_login(server: Optional[str], token: Optional[str], fingerprint: Optional[str]) -> Login:
    """The server that is named, else SHOAL_SERVER, else that of the last `shoal login`; the token that is named, else
    SHOAL_TOKEN, else that of the login."""
    logins = read_logins(login_file())
    named = server or os.environ.get("SHOAL_SERVER") or ""
    if not named:
        default = logins.get("default", "")
        named = default if isinstance(default, str) else ""
    if not named or named == "none":
        raise ConfigurationError("no server is named; `shoal login URL` stores one, or set SHOAL_SERVER and SHOAL_TOKEN, or pass "
                                 "shoal.Client(server=…, token=…)")
    url = normalize_urls(named)
    servers = logins.get("servers")
    servers = servers if isinstance(servers, dict) else {}
    # One of several servers that were signed in to together stands for all of them.
    url = url if url in servers else next((urls for urls in servers if url in urls.split(",")), url)
    stored = servers.get(url)
    stored = stored if isinstance(stored, dict) else {}
    chosen = token or os.environ.get("SHOAL_TOKEN") or stored.get("token") or ""
    if not isinstance(chosen, str) or not chosen:
        raise ConfigurationError(f"there is no token for the server {url}; `shoal login {url}` stores one, or set SHOAL_TOKEN")
    if re.search(r"[^\x21-\x7e]", chosen):
        raise ConfigurationError("the token has blanks or characters that no token has; copy it again")
    pinned = fingerprint or stored.get("fingerprint") or ""
    return Login(url, chosen, normalize_fingerprint(pinned) if isinstance(pinned, str) and pinned else "")
