// @ts-check
// Loaded before a block of the docs: checks the values its lines promise. A promise that is broken, or
// never reached, fails the process however the block itself ends.
import { formatWithOptions, inspect } from "node:util";

const page = process.env.SLUICE_DOCS_PAGE;
const unreached = new Set((process.env.SLUICE_DOCS_PROMISES ?? "").split(",").filter(Boolean).map(Number));
const style = { compact: true, breakLength: Number.POSITIVE_INFINITY, depth: null, maxArrayLength: null };
let broken = false;

Object.assign(globalThis, { __shows: shows });

process.on("exit", () => {
  for (const line of unreached) console.error(`${page}:${line}: this line was never reached`);
  if (broken || unreached.size > 0) process.exitCode = 1;
});

/**
 * @param {number} line
 * @param {string} promised
 * @param {unknown[]} values
 */
function shows(line, promised, ...values) {
  unreached.delete(line);
  const forms = [formatWithOptions(style, ...values)];
  if (values.length === 1) forms.push(inspect(values[0], style), asJson(values[0]));
  const pattern = new RegExp(
    `^${promised
      .split(/\.\.\.|…/)
      .map(literally)
      .join(".*")}$`,
    "s",
  );
  if (forms.some((form) => pattern.test(plain(form)))) return;
  broken = true;
  console.error(
    `${page}:${line}: promised ${promised}\n${" ".repeat(`${page}:${line}:`.length)} but got  ${forms[1] ?? forms[0]}`,
  );
}

/** @param {unknown} value */
function asJson(value) {
  try {
    return JSON.stringify(value) ?? "undefined";
  } catch {
    return ""; // circular, or a bigint
  }
}

/**
 * Quotes of one kind, and no space that says nothing.
 * @param {string} text
 */
function plain(text) {
  return text
    .replaceAll("'", '"')
    .replace(/\s+/g, " ")
    .replace(/ ?([{}[\]:,]) ?/g, "$1")
    .trim();
}

/** @param {string} text */
function literally(text) {
  return plain(text).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
