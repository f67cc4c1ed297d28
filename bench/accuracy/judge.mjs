// @ts-check
// The oracle: it knows when each request truly came and holds a limiter to its own history. Naive on purpose.

/**
 * @typedef {object} Judgement
 * @property {number} decisions
 * @property {number} admitted units of cost
 * @property {number} mostInWindow the most units admitted in any true window
 * @property {number} wronglyAllowed calls let through although the window had no room for them
 * @property {number} wronglyRefused calls refused although it had, even had those wrongly refused before been admitted: each free place counts once
 * @property {number} worstLockOutMs the longest time in which a key was refused, call after call, all wrongly
 */

/** What happened to one key within the last window. */
class History {
  /** @type {{ at: number, cost: number }[]} */
  #entries = [];
  #head = 0;
  inWindow = 0;

  /**
   * A request admitted at t counts while `now - t < window`, and no longer.
   * @param {number} now
   * @param {number} windowMs
   */
  forget(now, windowMs) {
    for (
      let entry = this.#entries[this.#head];
      entry && now - entry.at >= windowMs;
      entry = this.#entries[this.#head]
    ) {
      this.inWindow -= entry.cost;
      this.#head++;
    }
    if (this.#head > 10_000) {
      this.#entries.splice(0, this.#head);
      this.#head = 0;
    }
  }

  /**
   * @param {number} at
   * @param {number} cost
   */
  add(at, cost) {
    this.#entries.push({ at, cost });
    this.inWindow += cost;
  }
}

export class Judge {
  /** @type {Judgement} */
  judgement = {
    decisions: 0,
    admitted: 0,
    mostInWindow: 0,
    wronglyAllowed: 0,
    wronglyRefused: 0,
    worstLockOutMs: 0,
  };
  #limit;
  #windowMs;
  /** @type {Map<string, History>} */
  #admitted = new Map();
  /** @type {Map<string, History>} */
  #wronglyRefused = new Map();
  /** Since when each key is locked out. @type {Map<string, number>} */
  #lockedSince = new Map();

  /** @param {{ limit: number, windowMs: number }} rule */
  constructor({ limit, windowMs }) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  /**
   * Whether the limit had room for a call, going by what was admitted so far.
   * @param {string} key
   * @param {number} at
   * @param {number} cost
   */
  hasRoom(key, at, cost) {
    return this.#history(this.#admitted, key, at).inWindow + cost <= this.#limit;
  }

  /**
   * Takes one decision down, in the order of true time.
   * @param {string} key
   * @param {number} at
   * @param {number} cost
   * @param {boolean} allowed
   */
  record(key, at, cost, allowed) {
    const { judgement } = this;
    const room = this.hasRoom(key, at, cost);
    judgement.decisions++;
    const admitted = this.#history(this.#admitted, key, at);
    const owed = this.#history(this.#wronglyRefused, key, at);
    if (allowed) {
      admitted.add(at, cost);
      judgement.admitted += cost;
      judgement.mostInWindow = Math.max(judgement.mostInWindow, admitted.inWindow);
      if (!room) judgement.wronglyAllowed++;
    } else if (admitted.inWindow + owed.inWindow + cost <= this.#limit) {
      owed.add(at, cost);
      judgement.wronglyRefused++;
    }
    if (allowed || !room) {
      this.#lockedSince.delete(key);
    } else {
      const since = this.#lockedSince.get(key) ?? at;
      this.#lockedSince.set(key, since);
      judgement.worstLockOutMs = Math.max(judgement.worstLockOutMs, at - since);
    }
  }

  /**
   * @param {Map<string, History>} histories
   * @param {string} key
   * @param {number} now
   */
  #history(histories, key, now) {
    const history = histories.get(key) ?? new History();
    histories.set(key, history);
    history.forget(now, this.#windowMs);
    return history;
  }
}
