// IP addresses by their bits. Two notations of one address are one client, and an IPv4 address is
// itself whether or not IPv6 carries it. Whatever is not an address is refused rather than guessed at.

/** Four bytes, or eight groups of 16 bits. */
export type Address = readonly number[];

/** The addresses whose first `bits` bits are these. */
export interface Network {
  readonly address: Address;
  readonly bits: number;
}

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;
const MAPPED = "::ffff:";

/** The address a text stands for, IPv4-mapped ones as IPv4, or undefined; a zone (`%eth0`) is left out. */
export function parseAddress(text: string): Address | undefined {
  if (!text.includes(":")) return parseIPv4(text);
  const zone = text.indexOf("%");
  const groups = parseIPv6(zone < 0 ? text : text.slice(0, zone));
  return groups && isMapped(groups) ? toIPv4(groups) : groups;
}

function parseIPv4(text: string): Address | undefined {
  const parts = IPV4.exec(text)?.slice(1);
  // A leading zero means octal to some readers, so that two of them would see two addresses.
  if (!parts?.every((part) => Number(part) < 256 && String(Number(part)) === part)) return undefined;
  return parts.map(Number);
}

function parseIPv6(text: string): Address | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = parseGroups(halves[0] as string, halves.length === 1);
  const tail = parseGroups(halves[1] ?? "", true);
  if (!head || !tail) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  return [...head, ...new Array<number>(missing).fill(0), ...tail];
}

function parseGroups(text: string, isEnd: boolean): number[] | undefined {
  const groups: number[] = [];
  if (text === "") return groups;
  const parts = text.split(":");
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as string;
    if (/^[\da-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const bytes = isEnd && i === parts.length - 1 ? parseIPv4(part) : undefined;
    if (!bytes) return undefined;
    const [a, b, c, d] = bytes as [number, number, number, number];
    groups.push(a * 256 + b, c * 256 + d);
  }
  return groups;
}

function isMapped(groups: Address): boolean {
  return groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
}

function toIPv4(groups: Address): Address {
  const [high, low] = groups.slice(6) as [number, number];
  return [high >> 8, high & 255, low >> 8, low & 255];
}

/** One text per client: IPv4 whole, IPv6 cut to the prefix that one client is given. */
export function clientText(address: Address, ipv6Prefix: number): string {
  if (address.length === 4) return address.join(".");
  const kept = Math.ceil(ipv6Prefix / 16);
  const groups = address.slice(0, kept);
  const cut = kept * 16 - ipv6Prefix;
  groups[kept - 1] = ((groups[kept - 1] as number) >> cut) << cut;
  const text = groups.map((group) => group.toString(16)).join(":");
  if (ipv6Prefix === 128) return text;
  return `${text}${kept < 8 ? "::" : ""}/${ipv6Prefix}`;
}

/** `clientText` straight from the text of a socket, which is well formed: most need no parsing. */
export function clientOfPeer(peer: string, ipv6Prefix: number): string | undefined {
  if (!peer.includes(":")) return peer;
  if (peer.startsWith(MAPPED) && peer.includes(".")) return peer.slice(MAPPED.length);
  const address = parseAddress(peer);
  return address && clientText(address, ipv6Prefix);
}

/** A CIDR, or a single address; undefined when it is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [, host = "", digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = parseAddress(host);
  if (!address) return undefined;
  const full = address.length === 4 ? 32 : 128;
  let bits = digits === undefined ? full : Number(digits);
  if (full === 32 && host.includes(":") && digits !== undefined) bits -= 96; // an IPv4-mapped network
  return bits >= 0 && bits <= full ? { address, bits } : undefined;
}

/** Whether the address is of the network; an IPv4 address is of no IPv6 network. */
export function contains(network: Network, address: Address): boolean {
  if (network.address.length !== address.length) return false;
  const size = address.length === 4 ? 8 : 16;
  let left = network.bits;
  for (let i = 0; left > 0; i++, left -= size) {
    const cut = Math.max(0, size - left);
    if ((network.address[i] as number) >> cut !== (address[i] as number) >> cut) return false;
  }
  return true;
}
