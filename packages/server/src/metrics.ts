// What is counted, for Prometheus. Labels carry names out of the configuration alone, never a key.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Decision, RuleDecision } from "sluice";

export type Outcome = "allowed" | "denied" | "degraded" | "shadow_allowed" | "shadow_denied";

/** The counts of one rule: plain numbers, since every decision adds to them; /metrics reads them. */
export class Tally {
  readonly outcomes: Record<Outcome, number> = {
    allowed: 0,
    denied: 0,
    degraded: 0,
    shadow_allowed: 0,
    shadow_denied: 0,
  };
  nearLimit = 0;
}

/** Decisions that leave less than this share of the limit are near it. */
const NEAR = 0.2;

/** The tallies of one limiter's rules, by rule. */
export class LimiterTallies {
  readonly #rules = new Map<string, Tally>();

  rule(name: string): Tally {
    let tally = this.#rules.get(name);
    if (tally === undefined) {
      tally = new Tally();
      this.#rules.set(name, tally);
    }
    return tally;
  }

  entries(): IterableIterator<[string, Tally]> {
    return this.#rules.entries();
  }

  /** One decision is counted once, under the rule that bound it. */
  count(decision: Pick<Decision, "rule" | "allowed" | "limit" | "remaining" | "degraded">): void {
    const tally = this.rule(decision.rule);
    if (decision.degraded !== undefined) tally.outcomes.degraded++;
    else if (!decision.allowed) tally.outcomes.denied++;
    else {
      tally.outcomes.allowed++;
      if (decision.remaining < decision.limit * NEAR) tally.nearLimit++;
    }
  }

  /** A trial's decision is counted apart. */
  countShadow({ rule, allowed, degraded }: RuleDecision): void {
    if (degraded === undefined) this.rule(rule).outcomes[allowed ? "shadow_allowed" : "shadow_denied"]++;
  }
}

const LATENCIES = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1];

export class Metrics {
  readonly registry = new Registry();
  readonly #limiters = new Map<string, LimiterTallies>();
  readonly latency = this.#histogram("sluice_request_duration_seconds", "Time to answer, by endpoint", [
    "endpoint",
  ]);
  readonly redisLatency = this.#histogram(
    "sluice_redis_trip_duration_seconds",
    "Time of a round trip to Redis",
    [],
  );
  readonly batchSize = new Histogram({
    name: "sluice_batch_size",
    help: "Decisions per /v1/batch request",
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
    registers: [this.registry],
  });
  readonly redisTrips = this.#counter("sluice_redis_trips_total", "Round trips to Redis", ["result"]);
  readonly outages = this.#counter("sluice_outages_total", "Times the store was found out", []);
  readonly storeUp = this.#gauge("sluice_store_up", "Whether the store answers (1) or is out (0)");
  readonly reloads = this.#counter("sluice_reloads_total", "Reloads of the configuration", ["result"]);
  readonly configValid = this.#gauge(
    "sluice_config_valid",
    "Whether the files on disk are what is in force (1), or were refused (0)",
  );
  readonly rejected = this.#counter(
    "sluice_rejected_requests_total",
    "Requests refused before any decision",
    ["reason"],
  );
  readonly inFlight = this.#gauge("sluice_in_flight", "Decisions that wait for the store");
  readonly reservations = this.#gauge("sluice_open_reservations", "Reservations neither settled nor expired");

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    this.storeUp.set(1);
    this.configValid.set(1);
    const eachRule = (add: (labels: Record<"limiter" | "rule", string>, tally: Tally) => void) => {
      for (const [limiter, rules] of this.#limiters) {
        for (const [rule, tally] of rules.entries()) add({ limiter, rule }, tally);
      }
    };
    new Counter({
      name: "sluice_decisions_total",
      help: "Decisions by limiter (or domain), binding rule and outcome",
      labelNames: ["limiter", "rule", "outcome"],
      registers: [this.registry],
      collect() {
        this.reset();
        eachRule((labels, tally) => {
          for (const [outcome, count] of Object.entries(tally.outcomes)) {
            if (count > 0) this.inc({ ...labels, outcome }, count);
          }
        });
      },
    });
    new Counter({
      name: "sluice_near_limit_total",
      help: `Allowed decisions that left less than ${NEAR * 100}% of the limit`,
      labelNames: ["limiter", "rule"],
      registers: [this.registry],
      collect() {
        this.reset();
        eachRule((labels, tally) => this.inc(labels, tally.nearLimit));
      },
    });
  }

  /** The tallies of a limiter; they outlive reloads. */
  limiter(name: string): LimiterTallies {
    const tallies = this.#limiters.get(name) ?? new LimiterTallies();
    this.#limiters.set(name, tallies);
    return tallies;
  }

  #counter<const Label extends string>(name: string, help: string, labelNames: readonly Label[]) {
    return new Counter<Label>({ name, help, labelNames, registers: [this.registry] });
  }

  #gauge(name: string, help: string) {
    return new Gauge({ name, help, registers: [this.registry] });
  }

  #histogram<const Label extends string>(name: string, help: string, labelNames: readonly Label[]) {
    return new Histogram<Label>({ name, help, labelNames, buckets: LATENCIES, registers: [this.registry] });
  }
}
