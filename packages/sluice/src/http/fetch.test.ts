import { expect, test, vi } from "vitest";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import { rateLimit } from "./fetch.js";
import type { Answer } from "./options.js";

const hour = (limit: number) => createLimiter({ rules: slidingLog({ name: "hour", limit, window: "1h" }) });

test("a guard that cannot know addresses is refused at the start", () => {
  expect(() => rateLimit({ limiter: hour(1) }, () => new Response())).toThrow("does not know where");
});

test("a response that cannot be changed is copied", async () => {
  const guarded = rateLimit({ limiter: hour(5), peer: () => "192.0.2.1" }, () =>
    Response.redirect("https://example.com/", 302),
  );
  const response = await guarded(new Request("https://example.com/a"));
  expect([response.status, response.headers.get("RateLimit-Policy")]).toEqual([302, '"hour";q=5;w=3600']);
});

test("a body settles when it is read to its end, and when its reader leaves", async () => {
  const answers: Answer[] = [];
  const settle = (answer: Answer) => {
    answers.push(answer);
    return answer.bytes;
  };
  const limiter = hour(1000);
  const guarded = rateLimit({ limiter, settle, peer: () => "192.0.2.1" }, () => {
    let n = 0;
    const pull = (controller: ReadableStreamDefaultController) => {
      controller.enqueue(new Uint8Array(100));
      n += 1;
      if (n === 5) controller.close();
    };
    return new Response(new ReadableStream({ pull }), { headers: { "Content-Type": "image/png" } });
  });
  const request = () => guarded(new Request("https://example.com/"));
  const response = await request();
  expect(response.headers.get("Content-Type")).toBe("image/png");
  expect(answers).toEqual([]);
  expect((await response.arrayBuffer()).byteLength).toBe(500);
  const reader = (await request()).body?.getReader();
  await reader?.read();
  await reader?.cancel();
  expect(answers).toEqual([
    { status: 200, bytes: 500, aborted: false },
    { status: 200, bytes: 100, aborted: true },
  ]);
  await vi.waitFor(async () => expect((await limiter.status("192.0.2.1"))[0]?.count).toBe(600));
});
