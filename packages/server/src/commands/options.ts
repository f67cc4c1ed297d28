// How the commands read their options.
import { InvalidArgumentError } from "commander";
import { type Address, parseAddress } from "../address.js";

/** One more of an option that may be told several times. */
export function another(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

export function address(text: string): Address {
  const parsed = parseAddress(text);
  if (parsed) return parsed;
  throw new InvalidArgumentError("It must be an address with a port, such as 127.0.0.1:8080 or [::1]:8080.");
}

export function wholeNumber(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number >= 1) return number;
  throw new InvalidArgumentError("It must be a whole number of at least 1.");
}

export function milliseconds(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be whole milliseconds, such as 250.");
}
