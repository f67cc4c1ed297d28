import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { listen, type Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import * as node from "./node.js";
import type { Answer } from "./options.js";

const opened: Pick<Running, "close">[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((running) => running.close()));
});
const hour = (limit: number) => createLimiter({ rules: slidingLog({ name: "hour", limit, window: "1h" }) });

test("requests in a pipeline whose client leaves all settle", async () => {
  const limiter = hour(10);
  const answers: Answer[] = [];
  const settle = (answer: Answer) => {
    answers.push(answer);
    return 0;
  };
  const running = await listen(node.rateLimit({ limiter, settle }, () => {})); // never answers
  opened.push(running);
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3));
  await vi.waitFor(async () => expect((await limiter.status("127.0.0.1"))[0]?.count).toBe(3));
  socket.destroy();
  await vi.waitFor(() =>
    expect(answers).toEqual(new Array(3).fill({ status: 499, bytes: 0, aborted: true })),
  );
  await vi.waitFor(async () => expect((await limiter.status("127.0.0.1"))[0]?.count).toBe(0));
});

test("requests in a pipeline that are answered settle once, and leave no listener behind", async () => {
  const answers: Answer[] = [];
  const settle = (answer: Answer) => {
    answers.push(answer);
    return 1;
  };
  let listeners = 0;
  const running = await listen(
    node.rateLimit({ limiter: hour(100), settle }, (request, response) => {
      listeners = request.socket.listenerCount("close");
      setTimeout(() => response.end("ok"), 5);
    }),
  );
  opened.push(running);
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(8));
  await vi.waitFor(() => expect(answers).toHaveLength(8));
  const most = listeners;
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await vi.waitFor(() => expect(answers).toHaveLength(9));
  expect(answers).toEqual(new Array(9).fill({ status: 200, bytes: 2, aborted: false }));
  expect(listeners).toBeLessThan(most);
  socket.destroy();
});
