// Who sent a request: the socket's peer or, where a proxy we trust says so, the one it spoke for.
// Forwarded headers are read from the right, past trusted hops only: each proxy appends what it saw,
// so all that stands to the left of the first untrusted hop is the client's to write.
import { show, wholeNumber } from "../errors.js";
import { type Address, clientText, contains, parseAddress, parseNetwork } from "./address.js";
import { refuseOption } from "./options.js";

/**
 * The proxies in front of this server: how many there are, or their addresses as CIDRs.
 * `header` is the one they write: `"x-forwarded-for"` unless told. Others, `"forwarded"` too, are
 * not read, since a proxy that does not write a header lets the client's own pass.
 */
export type TrustProxy =
  | number
  | readonly string[]
  | { readonly hops: number; readonly header?: string }
  | { readonly from: readonly string[]; readonly header?: string };

export interface AddressOptions {
  /** The proxies in front of this server: none unless told. `true` is refused. */
  readonly trustProxy?: TrustProxy;
  /** How much of an IPv6 address is one client: its first 64 bits unless told. */
  readonly ipv6Prefix?: number;
}

/** Reads one header of the request at hand. */
export type ReadHeader<Request> = (request: Request, name: string) => string | undefined;

/** Names the client of a request, whose peer is `peer`; undefined when nothing tells who it is. */
export type ClientOf<Request> = (request: Request, peer: string | undefined) => string | undefined;

/** Whom a trusted hop does not name: they all count as one. */
const UNKNOWN = "unknown";
const LONGEST_CHAIN = 32;
/** Looking at headers costs, so a misconfigured proxy is looked for among the first requests alone. */
const REQUESTS_LOOKED_AT = 1000;
/** Parsing takes longer than a decision. More would keep alive more of the headers that addresses are cut out of. */
const MOST_KNOWN = 1000;

/** Reads clients as the options say; options that would let clients name themselves are refused. */
export function clientReader<Request>(options: AddressOptions, read: ReadHeader<Request>): ClientOf<Request> {
  const lookUp = clients(wholeNumber("INVALID_OPTION", "ipv6Prefix", options.ipv6Prefix ?? 64, 1, 128));
  const trust = checkTrust(options.trustProxy);
  if (trust === undefined) return untrusting(lookUp, read);
  const { header, trusts } = trust;
  const value = header === "forwarded" ? forwardedFor : bareAddress;
  return (request, peer = "") => {
    let client = lookUp(peer);
    let chain = trusts(client?.address, 0) ? read(request, header) : undefined;
    for (let hop = 1; chain !== undefined && hop <= LONGEST_CHAIN; hop++) {
      const comma = chain.lastIndexOf(",");
      const before = lookUp(value(chain.slice(comma + 1).trim()));
      if (!before) break;
      client = before;
      chain = comma > 0 && trusts(client.address, hop) ? chain.slice(0, comma) : undefined;
    }
    return client?.text ?? UNKNOWN;
  };
}

interface Client {
  readonly address: Address;
  readonly text: string;
}

type LookUp = (text: string) => Client | undefined;

/** Who an address is; those seen lately are remembered. */
function clients(ipv6Prefix: number): LookUp {
  const known = new Map<string, Client>();
  return (text) => {
    const client = known.get(text);
    const address = client ? undefined : parseAddress(text);
    if (!address) return client;
    if (known.size >= MOST_KNOWN) known.clear();
    const made = { address, text: clientText(address, ipv6Prefix) };
    known.set(text, made);
    return made;
  };
}

function untrusting<Request>(lookUp: LookUp, read: ReadHeader<Request>): ClientOf<Request> {
  let looks = REQUESTS_LOOKED_AT;
  return (request, peer) => {
    if (looks > 0 && looks-- > 0 && (read(request, "x-forwarded-for") ?? read(request, "forwarded"))) {
      looks = 0;
      console.warn(
        "sluice: X-Forwarded-For is ignored, since no proxy is trusted. " +
          "Behind a proxy all clients count as one: set trustProxy.",
      );
    }
    return peer?.includes(":") ? lookUp(peer)?.text : peer;
  };
}

interface Trust {
  readonly header: string;
  /** Whether the peer (hop 0), or the address that the hop before told of, is a trusted proxy. */
  trusts(address: Address | undefined, hop: number): boolean;
}

function checkTrust(option: unknown): Trust | undefined {
  if (option === undefined || option === false || option === 0) return undefined;
  if (option === true) {
    refuseOption(
      "trustProxy: true would take the client's own word for its address; " +
        "give the number of proxies or their CIDRs",
    );
  }
  const {
    hops,
    from,
    header = "x-forwarded-for",
  } = typeof option === "number"
    ? { hops: option }
    : Array.isArray(option)
      ? { from: option }
      : Object(option);
  if ((hops === undefined) === (from === undefined)) {
    refuseOption(
      `trustProxy must be a number of proxies or a list of CIDRs, or have one of hops and from; got ${show(option)}`,
    );
  }
  if (typeof header !== "string" || !/^[\w-]+$/.test(header)) {
    refuseOption(`trustProxy's header must be a header's name; got ${show(header)}`);
  }
  return { header: header.toLowerCase(), trusts: from === undefined ? trustHops(hops) : trustNetworks(from) };
}

function trustHops(option: unknown): Trust["trusts"] {
  const hops = wholeNumber("INVALID_OPTION", "trustProxy", option, 1, LONGEST_CHAIN);
  return (_, hop) => hop < hops;
}

function trustNetworks(option: unknown): Trust["trusts"] {
  if (!Array.isArray(option) || option.length === 0) {
    refuseOption(`trustProxy's CIDRs must be a list such as ["10.0.0.0/8"]; got ${show(option)}`);
  }
  const networks = option.map(
    (text: unknown) =>
      parseNetwork(String(text)) ??
      refuseOption(`trustProxy has ${show(text)}, which is neither an address nor a CIDR`),
  );
  return (address) => address !== undefined && networks.some((network) => contains(network, address));
}

/** An entry of X-Forwarded-For, without the port that some proxies add. */
function bareAddress(entry: string): string {
  const [, bracketed, ported] = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(entry) ?? [];
  return bracketed ?? ported ?? entry;
}

/** The `for` of an element of Forwarded (RFC 7239); empty when it has none, or hides it. */
function forwardedFor(element: string): string {
  const [, quoted, token] = /(?:^|;)\s*for=(?:"([^"\\]*)"|([^\s";]*))\s*(?:;|$)/i.exec(element) ?? [];
  return bareAddress(quoted ?? token ?? "");
}
