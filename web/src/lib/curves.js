// Numbers of the progress display rather than of the training.
const UNWANTED = new Set(["step", "total", "job_step", "job_total", "eta_s"]);
// First what people look at first.
const ORDER = ["loss", "accuracy", "auc", "words_per_second", "examples_per_second", "lr"];
export function taskOf(name) {
    return name.slice(0, Math.max(0, name.indexOf(".")));
}
export function groups(series) {
    const byName = new Map();
    for (const one of series) {
        const name = one.name.slice(one.name.indexOf(".") + 1);
        if (UNWANTED.has(name))
            continue;
        const list = byName.get(name);
        if (list)
            list.push(one);
        else
            byName.set(name, [one]);
    }
    const rank = (name) => {
        const at = ORDER.indexOf(name);
        return at < 0 ? ORDER.length : at;
    };
    return [...byName.entries()]
        .map(([name, list]) => ({ name, series: list }))
        .sort((a, b) => rank(a.name) - rank(b.name) || a.name.localeCompare(b.name));
}
