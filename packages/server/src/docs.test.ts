// What docs/server.md shows: every curl is run against what `npm start` serves, every YAML is checked.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EXAMPLES } from "./config/defaults.js";
import { loadConfiguration, parseConfiguration } from "./config/load.js";
import { openServer, type TestServer } from "./testing/testServer.js";

const page = readFileSync(new URL("../../../docs/server.md", import.meta.url), "utf8");
const fences = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
  language,
  text: text!,
}));
/** Differ from run to run. */
const VOLATILE = /^(id|\w+At|\w+AfterMs)$/;

test.each(fences.filter(({ language }) => language === "yaml").map(({ text }) => text))(
  "this YAML is right:\n%s",
  (text) => {
    expect(() => parseConfiguration([{ name: "docs/server.md", text }])).not.toThrow();
  },
);

describe("curl", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await openServer([], { configuration: loadConfiguration([EXAMPLES]) });
  });
  afterAll(() => server.close());

  test("commands work, in the order of the page, and answer what stands under them", async () => {
    let id = "";
    let run = 0;
    for (const [f, { language, text }] of fences.entries()) {
      if (language !== "sh" || !text.includes("curl ")) continue;
      for (const command of text.split("\n").filter((line) => line.startsWith("curl "))) {
        const here = command.replaceAll("http://127.0.0.1:8080", server.base).replace("$ID", id);
        // The page cancels the reservation that it settled, to show the command.
        const fails = here.includes("/cancel") ? "" : " --fail";
        const { stdout } = await promisify(execFile)("sh", ["-c", here + fails]);
        run++;
        const next = fences[f + 1];
        if (next?.language !== "json") continue;
        const answer = JSON.parse(stdout);
        id = answer.id ?? id;
        expect(steady(answer), command).toEqual(steady(JSON.parse(next.text)));
      }
    }
    expect(run).toBeGreaterThan(14);
  });

  test("commands show every endpoint that there is", async () => {
    const { paths } = (await server.ask("/openapi.json")).body as { paths: Record<string, object> };
    const missing = Object.keys(paths).filter(
      (path) => !new RegExp(`curl .*${path.replace(/\{\w+\}/g, "[^/ ]+")}[ \n]`).test(`${page}\n`),
    );
    expect(missing).toEqual([]);
  });
});

function steady(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, each) => (VOLATILE.test(key) ? null : each)));
}
