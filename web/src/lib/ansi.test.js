import { expect, test } from "vitest";
import { pieces, plain } from "./ansi";
test("colours and weights become classes, and end at a reset", () => {
    expect(pieces("a \x1b[1;31mred\x1b[0m b")).toEqual([
        { text: "a ", style: "" },
        { text: "red", style: "ansi-bold ansi-1" },
        { text: " b", style: "" },
    ]);
    expect(pieces("\x1b[92mgreen\x1b[39m plain")).toEqual([
        { text: "green", style: "ansi-10" },
        { text: " plain", style: "" },
    ]);
});
test("palettes and backgrounds take their arguments with them", () => {
    expect(pieces("\x1b[38;5;3myellow")).toEqual([{ text: "yellow", style: "ansi-3" }]);
    expect(pieces("\x1b[38;2;1;31;5mtrue colour")).toEqual([{ text: "true colour", style: "" }]);
    expect(pieces("\x1b[48;5;31mback")).toEqual([{ text: "back", style: "" }]);
});
test("what steers a terminal is left out", () => {
    expect(plain("\x1b]0;title\x07a\x1b[2Kb\x1b[10;3Hc\x1b(Bd\x00\x08e")).toBe("abcde");
    expect(plain("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\")).toBe("link");
    expect(plain("\x1b")).toBe("");
});
test("of a line that was drawn over, the last state is shown", () => {
    expect(plain("10 %\r50 %\r100 %")).toBe("100 %");
    expect(plain("done\r")).toBe("done");
});
test("markup stays text", () => {
    expect(plain("<script>alert(1)</script>")).toBe("<script>alert(1)</script>");
});
