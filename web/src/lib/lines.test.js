import { expect, test } from "vitest";
import { bytesOf, Lines } from "./lines";
const bytes = (text) => new TextEncoder().encode(text);
test("lines and characters may be cut anywhere", () => {
    const text = "eins\nzwölf\n猫と犬\nrest";
    for (let size = 1; size < 8; ++size) {
        const lines = new Lines();
        const all = bytes(text);
        for (let at = 0; at < all.length; at += size)
            lines.add(all.slice(at, at + size));
        expect(lines.all()).toEqual(["eins", "zwölf", "猫と犬", "rest"]);
        expect(lines.offset).toBe(all.length);
        expect(lines.length).toBe(4);
        expect(lines.at(3)).toBe("rest");
    }
});
test("the oldest lines go first", () => {
    const lines = new Lines(0, 2);
    lines.add(bytes("a\nb\nc\n"));
    expect(lines.lines).toEqual(["b", "c"]);
});
test("bytes that are not UTF-8 come in base64", () => {
    expect([...bytesOf({ base64: "/wA=" })]).toEqual([255, 0]);
    expect([...bytesOf({ text: "é" })]).toEqual([195, 169]);
});
