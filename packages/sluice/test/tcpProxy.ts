import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * What the proxy does with bytes: passes them on, late or at once; holds both ways, as a black hole that
 * may end; holds the answers alone (half-open); swallows all; or refuses connections.
 */
export type ProxyMode = "forward" | "delay" | "hold" | "halfOpen" | "swallow" | "refuse";

/** A TCP proxy whose faults a test sets while connections are open. */
export interface TcpProxy {
  readonly port: number;
  /** Where new connections go. */
  target: number;
  set(mode: ProxyMode, delayMs?: number): void;
  /** Breaks all connections. */
  reset(): void;
  stop(): Promise<void>;
}

export async function startProxy(target: number): Promise<TcpProxy> {
  const pipes = new Set<Pipe>();
  let mode: ProxyMode = "forward";
  let delayMs = 0;
  const server = createServer((client) => {
    if (mode === "refuse") return void client.destroy();
    const upstream = connect(proxy.target, "127.0.0.1");
    const there = new Pipe(client, upstream, () => isHeld("request"));
    const back = new Pipe(upstream, client, () => isHeld("reply"));
    for (const pipe of [there, back]) {
      pipes.add(pipe);
      pipe.from.once("close", () => {
        pipes.delete(there);
        pipes.delete(back);
        client.destroy();
        upstream.destroy();
      });
    }
  });

  function isHeld(direction: "request" | "reply"): number {
    if (mode === "swallow") return -1;
    if (mode === "hold" || (mode === "halfOpen" && direction === "reply")) return Infinity;
    return mode === "delay" ? delayMs : 0;
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy: TcpProxy = {
    port: (server.address() as AddressInfo).port,
    target,
    set(next, ms = 0) {
      mode = next;
      delayMs = ms;
      for (const pipe of pipes) pipe.release();
      if (next === "refuse") proxy.reset();
    },
    reset() {
      for (const pipe of pipes) pipe.from.destroy();
    },
    async stop() {
      proxy.reset();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

/** One direction of a connection. */
class Pipe {
  readonly from: Socket;
  readonly #to: Socket;
  readonly #heldFor: () => number;
  #held: Buffer[] = [];

  constructor(from: Socket, to: Socket, heldFor: () => number) {
    this.from = from;
    this.#to = to;
    this.#heldFor = heldFor;
    from.on("error", () => {});
    from.on("data", (data: Buffer) => this.#pass(data));
  }

  /** Sends what was held, where it is held no longer. */
  release(): void {
    if (this.#heldFor() === Infinity) return;
    for (const data of this.#held.splice(0)) this.#pass(data);
  }

  #pass(data: Buffer): void {
    const ms = this.#heldFor();
    if (ms < 0) return;
    if (ms === Infinity) this.#held.push(data);
    else if (ms > 0) setTimeout(() => this.#write(data), ms);
    else this.#write(data);
  }

  #write(data: Buffer): void {
    if (this.#to.writable) this.#to.write(data);
  }
}
