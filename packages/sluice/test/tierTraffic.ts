import { type Arrival, randomFrom } from "./tierSimulation.js";

export interface TrafficOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly limit: number;
  readonly window: number;
  /** How many windows it lasts. */
  readonly windows: number;
  /** How much is asked for, as a multiple of the limit. */
  readonly load: number;
}

type Traffic = (options: TrafficOptions) => Arrival[];

/** Kinds of traffic on one hot key. */
export const TRAFFIC = {
  /** At random, evenly over time and nodes. */
  steady: (options) => {
    const random = randomFrom(options.seed);
    return poisson(options, random, options.windows * options.window, (time) => ({
      time,
      node: Math.floor(random() * options.nodes),
    }));
  },

  /** Bursts of all sizes on all nodes, with pauses. */
  bursty: (options) => {
    const random = randomFrom(options.seed);
    const times: Call[] = [];
    const calls = options.load * options.limit * options.windows;
    while (times.length < calls) {
      const start = random() * options.windows * options.window;
      const spread = options.window * 0.02 * random();
      const size = Math.ceil(options.limit * 0.2 * random());
      for (let n = 0; n < size; n++) {
        times.push({ time: start + spread * random(), node: Math.floor(random() * options.nodes) });
      }
    }
    return arrivals(times);
  },

  /** Most of it on a few nodes. */
  skewed: (options) => {
    const random = randomFrom(options.seed);
    return poisson(options, random, options.windows * options.window, (time) => ({
      time,
      node: Math.floor(random() ** 4 * options.nodes),
    }));
  },

  /**
   * Warms leases up, waits until they are about to expire, spends them, and comes back for more just as
   * what was charged for them leaves the window.
   */
  adversarial: (options) => {
    const random = randomFrom(options.seed);
    const times: Call[] = [];
    const { nodes, limit, window } = options;
    const lease = window / 250;
    for (let round = 0; round < options.windows; round++) {
      const start = round * (window + lease * (0.5 + 2.5 * random()));
      const burst = Math.ceil((limit / nodes) * (0.3 + random()));
      for (let node = 0; node < nodes; node++) {
        // Enough at once to be leased as much again, which is then spent at the very end of its life.
        for (let n = 0; n < burst; n++) times.push({ time: start + 0.4 * random(), node });
        for (let n = 0; n < burst; n++) {
          times.push({ time: start + lease * (0.8 + 1.2 * random() ** 3), node });
          times.push({ time: start + window + lease * (2 * random() - 0.5), node });
        }
      }
    }
    return arrivals(times);
  },
} satisfies Readonly<Record<string, Traffic>>;

interface Call {
  readonly time: number;
  readonly node: number;
}

function poisson(
  { limit, window, load }: TrafficOptions,
  random: () => number,
  to: number,
  call: (time: number) => Call,
): Arrival[] {
  const gap = window / (limit * load);
  const times: Call[] = [];
  for (let time = 0; time < to; time += gap * -Math.log(1 - random())) times.push(call(time));
  return arrivals(times);
}

/** In order, no two at the same instant. */
function arrivals(calls: readonly Call[]): Arrival[] {
  const sorted = [...calls].sort((a, b) => a.time - b.time);
  return sorted.map(({ time, node }, n) => ({ time: time + n * 1e-7, node, key: "hot", cost: 1 }));
}
