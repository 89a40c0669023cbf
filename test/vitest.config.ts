import { defineConfig } from "vitest/config";

/** Everything but e2e is in-process and quick; e2e starts real daemons and brokers. */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/e2e/**", "test/bench/**"],
        },
      },
      {
        test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
    ],
  },
});
