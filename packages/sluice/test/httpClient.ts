// A client of the small apps in servers.ts.
import type { Limiter } from "../src/limiter.js";

export async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

/** How much of its limit this client has used. */
export async function used(limiter: Limiter): Promise<number | undefined> {
  return (await limiter.status("127.0.0.1"))[0]?.count;
}
