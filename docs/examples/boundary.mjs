// @ts-check
// `npm run boundary`: one client, one limit, four algorithms. Draws which requests each of them admits around the
// boundaries of the clock's minutes, and counts the most that got through in any 60 seconds. Virtual time.
import { createLimiter, fixedWindow, memoryStore, slidingCells, slidingCounter, slidingLog } from "sluice";

const LIMIT = 10;
const WINDOW = 60_000;
/** Milliseconds per mark: one request each. */
const STEP = 100;
/** The seconds in which the client sends ten requests. */
const BURSTS = [59_000, 61_000, 118_000, 119_000];
/** The stretches of time that are drawn, both ends included. */
const STRETCHES = [
  { from: 59_000, to: 62_000 },
  { from: 118_000, to: 120_000 },
];

const requests = BURSTS.flatMap((start) => Array.from({ length: 10 }, (_, n) => start + n * STEP));
const rule = { limit: LIMIT, window: WINDOW };
const subjects = [
  { rule: fixedWindow(rule), meaning: "Full before 1:00 and again after: twice the limit in 3 s." },
  { rule: slidingCounter(rule), meaning: "Takes traffic to be even: by 1:58 it has forgotten 0:59." },
  { rule: slidingCells(rule), meaning: "Never over. All of 0:59 leaves as one, just before 2:00." },
  { rule: slidingLog(rule), meaning: "Exact. 0:59.0 leaves at 1:59.0, and then there is room." },
];

const colours = process.stdout.isTTY && process.stdout.hasColors();
const width = Math.max(52, process.stdout.columns || Number(process.env.COLUMNS) || 80);
const paint = (/** @type {number} */ code, /** @type {string} */ text) =>
  colours ? `\u001b[${code}m${text}\u001b[0m` : text;
const bold = (/** @type {string} */ text) => paint(1, text);
const dim = (/** @type {string} */ text) => paint(2, text);
const green = (/** @type {string} */ text) => paint(32, text);
const red = (/** @type {string} */ text) => paint(31, text);

const NAME_WIDTH = 15;
const INDENT = "  ";
/** Stands for the time between two stretches. */
const GAP = " ~~~ ";
/** As in "0:59". */
const LABEL_WIDTH = 4;
/** Columns per mark: two where the terminal is wide enough for all stretches in one row. */
const scale = rowWidth(2) <= width ? 2 : 1;
const rows = rowWidth(1) <= width ? [STRETCHES] : STRETCHES.map((stretch) => [stretch]);

const results = subjects.map(({ rule, meaning }) => {
  const admitted = play(rule);
  return { name: rule.algorithm, meaning, admitted, most: mostInAnyWindow(admitted) };
});

say("");
say(bold(`${INDENT}${LIMIT} requests per minute`));
paragraph(`A client sends 10 requests in each of the seconds 0:59, 1:01, 1:58 and 1:59, ${STEP} ms apart.`);
for (const stretches of rows) {
  say("");
  say(INDENT + " ".repeat(NAME_WIDTH) + stretches.map(labels).join(" ".repeat(GAP.length - LABEL_WIDTH + 1)));
  say(INDENT + " ".repeat(NAME_WIDTH) + dim(stretches.map(axis).join(GAP)));
  for (const { name, admitted } of results) {
    const marks = stretches.map((stretch) => line(stretch, admitted)).join(" ".repeat(GAP.length));
    say(INDENT + name.padEnd(NAME_WIDTH) + marks);
  }
}
say("");
say(`${INDENT}${green("●")} admitted   ${red("○")} refused   ${dim("┃")} the clock's minute`);
say("");
say(bold(`${INDENT}The most in any 60 seconds`));
for (const { name, most, meaning } of results) {
  const verdict = (most > LIMIT ? red : green)(String(most).padStart(3));
  paragraph(meaning, `${name.padEnd(NAME_WIDTH)}${verdict}  `, NAME_WIDTH + 5);
}
say("");
say(bold(`${INDENT}Try next`));
for (const [what, where] of [
  ["use it", "README.md: ten lines"],
  ["choose one", "docs/guides/choose-an-algorithm.md"],
  ["the rest", "docs/README.md"],
  ["the proof", "npm test"],
]) {
  paragraph(where, what.padEnd(NAME_WIDTH), NAME_WIDTH);
}
say("");

/**
 * The times of the requests that the rule admits.
 * @param {import("sluice").Rule} rule
 */
function play(rule) {
  let now = 0;
  const limiter = createLimiter({ rules: rule, store: memoryStore({ clock: () => now }) });
  return requests.filter((at) => {
    now = at;
    return limiter.tryAcquireSync("client").allowed;
  });
}

/**
 * A request at t counts while now - t < window; it is enough to look when one has just been admitted.
 * @param {number[]} times
 */
function mostInAnyWindow(times) {
  return Math.max(...times.map((now) => times.filter((t) => t <= now && now - t < WINDOW).length));
}

/** @param {number} scale */
function rowWidth(scale) {
  const columns = STRETCHES.reduce((sum, { from, to }) => sum + ((to - from) / STEP) * scale + 1, 0);
  return INDENT.length + NAME_WIDTH + columns + GAP.length * (STRETCHES.length - 1) + LABEL_WIDTH - 1;
}

/**
 * One character per column of a stretch.
 * @param {{ from: number, to: number }} stretch
 * @param {(at: number) => string} mark for a time
 * @param {string} between fills the columns between two times
 */
function draw({ from, to }, mark, between) {
  const times = Array.from({ length: (to - from) / STEP + 1 }, (_, n) => from + n * STEP);
  return times.map(mark).join(between.repeat(scale - 1));
}

/** @param {{ from: number, to: number }} stretch */
function labels({ from, to }) {
  const seconds = Array.from({ length: (to - from) / 1000 + 1 }, (_, n) => from / 1000 + n);
  const texts = seconds.map((s) => `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`);
  return texts.join(" ".repeat((1000 / STEP) * scale - LABEL_WIDTH));
}

/** @param {{ from: number, to: number }} stretch */
function axis(stretch) {
  return draw(stretch, (at) => (at % WINDOW === 0 ? "╂" : at % 1000 === 0 ? "┼" : "─"), "─");
}

/**
 * @param {{ from: number, to: number }} stretch
 * @param {number[]} admitted
 */
function line(stretch, admitted) {
  const mark = (/** @type {number} */ at) => {
    if (admitted.includes(at)) return green("●");
    if (requests.includes(at)) return red("○");
    return at % WINDOW === 0 ? dim("┃") : " ";
  };
  return draw(stretch, mark, " ");
}

/**
 * Prints text broken at the terminal's width, later lines indented like the first.
 * @param {string} text
 * @param {string} [lead] stands before the first line
 * @param {number} [leadWidth] how wide that prints
 */
function paragraph(text, lead = "", leadWidth = 0) {
  const room = width - INDENT.length - leadWidth;
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.length - 1;
    const longer = lines[last] === "" ? word : `${lines[last]} ${word}`;
    if (longer.length <= room || lines[last] === "") lines[last] = longer;
    else lines.push(word);
  }
  lines.forEach((part, n) => {
    say(INDENT + (n === 0 ? lead : " ".repeat(leadWidth)) + part);
  });
}

/** @param {string} text */
function say(text) {
  console.log(text.trimEnd());
}
