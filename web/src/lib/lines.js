// The lines of a log that grows, by bytes: chunks come in any pieces, characters may be cut.
export class Lines {
    most;
    lines = [];
    offset;
    rest = "";
    decoder = new TextDecoder("utf-8", { fatal: false });
    constructor(offset = 0, most = 1_000_000) {
        this.most = most;
        this.offset = offset;
    }
    // Bytes that begin at `this.offset`.
    add(bytes) {
        this.offset += bytes.length;
        const text = this.rest + this.decoder.decode(bytes, { stream: true });
        const parts = text.split("\n");
        this.rest = parts.pop() ?? "";
        for (const part of parts)
            this.lines.push(part);
        if (this.lines.length > this.most)
            this.lines.splice(0, this.lines.length - this.most);
    }
    // With the line that is not yet complete.
    all() {
        return this.rest ? [...this.lines, this.rest] : this.lines;
    }
    get length() {
        return this.lines.length + (this.rest ? 1 : 0);
    }
    at(index) {
        return index < this.lines.length ? (this.lines[index] ?? "") : this.rest;
    }
}
// The bytes that an event of a stream carries: text, or base64 where they are no UTF-8.
export function bytesOf(data) {
    if (data.base64 !== undefined)
        return Uint8Array.from(atob(data.base64), (c) => c.charCodeAt(0));
    return new TextEncoder().encode(data.text ?? "");
}
