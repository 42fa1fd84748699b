import process from "node:process";
import { defineConfig } from "vitest/config";
// SHOAL_SERVER: `npx vite` serves the page from the sources and forwards the API to that server.
const server = process.env.SHOAL_SERVER ?? "http://127.0.0.1:7117";
export default defineConfig({
    esbuild: { jsx: "automatic", jsxImportSource: "preact" },
    build: {
        target: "es2022",
        outDir: "dist",
        assetsInlineLimit: 0,
        cssCodeSplit: false,
        modulePreload: false,
        rollupOptions: {
            output: {
                // One name for each part, so that the server can keep them for good.
                entryFileNames: "assets/[name]-[hash].js",
                chunkFileNames: "assets/[name]-[hash].js",
                assetFileNames: "assets/[name]-[hash][extname]",
            },
        },
    },
    test: { environment: "node", include: ["src/**/*.test.ts"] },
    server: { proxy: { "/api": { target: server, ws: true } } },
});
