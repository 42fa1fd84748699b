import { jsx as _jsx } from "preact/jsx-runtime";
import { render } from "preact";
import { App } from "./app";
import { session } from "./lib/api";
import { language } from "./lib/strings";
import "./theme.css";
// `shoal open` puts a token behind the #, which no server and no log sees; it leaves the address at
// once.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
    session.set(given);
    history.replaceState(null, "", location.pathname + location.search);
}
document.documentElement.lang = language();
const root = document.getElementById("app");
if (root)
    render(_jsx(App, {}), root);
