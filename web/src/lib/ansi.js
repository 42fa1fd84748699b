// Text of a terminal as pieces with a style. Only colours and weights are kept; everything else that
// a program sends to a terminal (cursor movements, titles, links) is left out.
const CONTROL = 
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
/\x1b\[([0-9;:]*)([ -/]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
function apply(codes, look) {
    const list = codes === "" ? ["0"] : codes.split(/[;:]/);
    for (let i = 0; i < list.length; ++i) {
        const code = Number(list[i] || 0);
        if (code === 0)
            Object.assign(look, { bold: false, faint: false, colour: -1 });
        else if (code === 1)
            look.bold = true;
        else if (code === 2)
            look.faint = true;
        else if (code === 22)
            look.bold = look.faint = false;
        else if (code === 39)
            look.colour = -1;
        else if (code >= 30 && code <= 37)
            look.colour = code - 30;
        else if (code >= 90 && code <= 97)
            look.colour = code - 90 + 8;
        else if (code === 38 || code === 48) {
            // 38;5;N and 38;2;R;G;B
            const palette = Number(list[i + 2] || 0);
            if (list[i + 1] === "5" && code === 38)
                look.colour = palette < 16 ? palette : -1;
            i += list[i + 1] === "5" ? 2 : 4;
        }
    }
}
function styleOf(look) {
    const names = [];
    if (look.bold)
        names.push("ansi-bold");
    if (look.faint)
        names.push("ansi-faint");
    if (look.colour >= 0)
        names.push(`ansi-${look.colour}`);
    return names.join(" ");
}
// Of one line. A program that draws over a line (a progress bar) ends it with what it drew last.
export function pieces(line) {
    const shown = line.slice(line.lastIndexOf("\r", line.length - 2) + 1);
    const result = [];
    const look = { bold: false, faint: false, colour: -1 };
    let from = 0;
    const add = (text) => {
        if (text)
            result.push({ text, style: styleOf(look) });
    };
    for (const match of shown.matchAll(CONTROL)) {
        add(shown.slice(from, match.index));
        from = match.index + match[0].length;
        if (match[3] === "m" && !match[2])
            apply(match[1] ?? "", look);
    }
    add(shown.slice(from));
    return result;
}
export function plain(line) {
    return pieces(line)
        .map((piece) => piece.text)
        .join("");
}
