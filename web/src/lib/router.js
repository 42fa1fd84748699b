// The address of the page as its state: path and query, so that each view can be linked to.
import { useEffect, useState } from "preact/hooks";
export function placeOf(location) {
    return {
        path: location.pathname.split("/").filter(Boolean).map(decodeURIComponent),
        query: new URLSearchParams(location.search),
    };
}
const listeners = new Set();
function tell() {
    for (const call of listeners)
        call();
}
window.addEventListener("popstate", tell);
// Goes to an address of this page. `replace`: without a step that "back" returns to.
export function go(address, replace = false) {
    if (address === location.pathname + location.search)
        return;
    if (replace)
        history.replaceState(null, "", address);
    else
        history.pushState(null, "", address);
    tell();
}
// Sets or removes one field of the query.
export function setQuery(name, value) {
    const query = new URLSearchParams(location.search);
    if (value)
        query.set(name, value);
    else
        query.delete(name);
    const text = query.toString();
    go(location.pathname + (text ? `?${text}` : ""), true);
}
export function usePlace() {
    const [place, setPlace] = useState(() => placeOf(location));
    useEffect(() => {
        const call = () => setPlace(placeOf(location));
        listeners.add(call);
        call();
        return () => {
            listeners.delete(call);
        };
    }, []);
    return place;
}
// For links: a plain click stays within the page.
export function follow(event) {
    if (event.defaultPrevented || event.button !== 0)
        return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
        return;
    const link = event.currentTarget;
    event.preventDefault();
    go(link.pathname + link.search);
}
