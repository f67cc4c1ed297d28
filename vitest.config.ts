import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "bench/**/*.test.ts",
      "docs/**/*.test.ts",
      "scripts/**/*.test.ts",
    ],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
  },
});
