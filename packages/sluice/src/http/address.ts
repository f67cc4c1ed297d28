// IP addresses by their bits. Two notations of one address are one client, and an IPv4 address is
// itself whether or not IPv6 carries it. Whatever is not an address is refused rather than guessed at.

/** Groups of 16 bits: two of an IPv4 address, eight of any other. */
export type Address = readonly number[];

/** The addresses whose first `bits` bits are these. */
export interface Network {
  readonly address: Address;
  readonly bits: number;
}

/** The groups that come before an IPv4 address where IPv6 carries it. */
const MAPPED = "0,0,0,0,0,65535";

/** The address a text stands for, IPv4-mapped ones as IPv4, or undefined; a zone (`%eth0`) is left out. */
export function parseAddress(text: string): Address | undefined {
  const [, bare = ""] = /^(?:::ffff:(?=\d+\.))?([\da-f:.]{2,45})(?:%.{1,32})?$/i.exec(text) ?? [];
  return bare.includes(":") ? parseIPv6(bare) : parseIPv4(bare);
}

function parseIPv4(text: string): Address | undefined {
  const bytes = text.split(".").map(Number);
  // No other notation gives the same text again: to some readers a leading zero means octal.
  if (bytes.length !== 4 || bytes.join(".") !== text || bytes.some((byte) => byte > 255)) return undefined;
  const [a, b, c, d] = bytes as [number, number, number, number];
  return [a * 256 + b, c * 256 + d];
}

/** URLs have every notation of IPv6, and those have no others. */
function parseIPv6(text: string): Address | undefined {
  const url = `http://[${text}]`;
  if (!URL.canParse(url)) return undefined;
  const [head = [], tail = []] = new URL(url).hostname
    .slice(1, -1)
    .split("::")
    .map((half) => (half.match(/[^:]+/g) ?? []).map((group) => Number.parseInt(group, 16)));
  const groups = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  return groups.slice(0, 6).join() === MAPPED ? groups.slice(6) : groups;
}

/** One text per client: IPv4 whole, IPv6 cut to the prefix that one client is given. */
export function clientText(address: Address, ipv6Prefix: number): string {
  if (address.length === 2) return address.flatMap((group) => [group >> 8, group & 255]).join(".");
  const kept = Math.ceil(ipv6Prefix / 16);
  const groups = address.slice(0, kept);
  const cut = kept * 16 - ipv6Prefix;
  groups[kept - 1] = ((groups[kept - 1] as number) >> cut) << cut;
  const text = groups.map((group) => group.toString(16)).join(":");
  if (ipv6Prefix === 128) return text;
  return `${text}${kept < 8 ? "::" : ""}/${ipv6Prefix}`;
}

/** A CIDR, or a single address; undefined when it is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [, host = "", digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = parseAddress(host);
  if (!address) return undefined;
  const size = address.length * 16;
  const written = host.includes(":") ? 128 : 32;
  const bits = Number(digits ?? written) - (written - size);
  return bits >= 0 && bits <= size ? { address, bits } : undefined;
}

/** Whether the address is of the network; an IPv4 address is of no IPv6 network. */
export function contains({ address, bits }: Network, other: Address): boolean {
  return (
    address.length === other.length &&
    address.every((group, i) => {
      const cut = Math.min(16, Math.max(0, (i + 1) * 16 - bits));
      return group >> cut === (other[i] as number) >> cut;
    })
  );
}
