// Who sent a request: the socket's peer or, where a proxy we trust says so, the one it spoke for.
// Forwarded headers are read from the right, past trusted hops only: each proxy appends what it saw,
// so all that stands to the left of the first untrusted hop is the client's to write.
import { show, wholeNumber } from "../errors.js";
import {
  type Address,
  clientOfPeer,
  clientText,
  contains,
  type Network,
  parseAddress,
  parseNetwork,
} from "./address.js";
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
/** Parsing an IPv6 address takes longer than a decision, and a connection brings many requests. */
const MOST_KNOWN = 1000;

/** Reads clients as the options say; options that would let clients name themselves are refused. */
export function clientReader<Request>(options: AddressOptions, read: ReadHeader<Request>): ClientOf<Request> {
  const prefix = wholeNumber("INVALID_OPTION", "ipv6Prefix", options.ipv6Prefix ?? 64, 1, 128);
  const trust = checkTrust(options.trustProxy);
  if (trust === undefined) return untrusting(prefix, read);
  const { header, trusts } = trust;
  const value = header === "forwarded" ? forwardedFor : bareAddress;
  return (request, peer) => {
    let client = peer === undefined ? undefined : parseAddress(peer);
    let chain = trusts(client, 0) ? read(request, header) : undefined;
    for (let hop = 1; chain !== undefined && hop <= LONGEST_CHAIN; hop++) {
      const comma = chain.lastIndexOf(",");
      const address = parseAddress(value(chain.slice(comma + 1).trim()));
      if (!address) break;
      client = address;
      chain = comma > 0 && trusts(client, hop) ? chain.slice(0, comma) : undefined;
    }
    return client ? clientText(client, prefix) : UNKNOWN;
  };
}

function untrusting<Request>(prefix: number, read: ReadHeader<Request>): ClientOf<Request> {
  let looks = REQUESTS_LOOKED_AT;
  const known = new Map<string, string | undefined>();
  const clientOf = (peer: string): string | undefined => {
    const found = known.get(peer);
    if (found !== undefined) return found;
    if (known.size >= MOST_KNOWN) known.clear();
    const client = clientOfPeer(peer, prefix);
    known.set(peer, client);
    return client;
  };
  return (request, peer) => {
    if (looks > 0 && looks-- > 0 && (read(request, "x-forwarded-for") ?? read(request, "forwarded"))) {
      looks = 0;
      console.warn(
        "sluice: a request came with X-Forwarded-For or Forwarded, but no proxy is trusted, so the header is ignored. " +
          "If this server stands behind a proxy, all its clients now count as one: set trustProxy to the number of proxies.",
      );
    }
    return peer?.includes(":") ? clientOf(peer) : peer;
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
      "trustProxy: true would take the client's own word for its address, as the leftmost entry of X-Forwarded-For " +
        "is the client's to write. Give the number of proxies in front of this server, such as 1, or their CIDRs",
    );
  }
  if (typeof option === "number") return trustHops(option, undefined);
  if (Array.isArray(option)) return trustNetworks(option, undefined);
  if (typeof option !== "object" || option === null) {
    refuseOption(`trustProxy must be a number of proxies or a list of CIDRs; got ${show(option)}`);
  }
  const { hops, from, header } = option as { hops?: unknown; from?: unknown; header?: unknown };
  if ((hops === undefined) === (from === undefined))
    refuseOption("trustProxy must have one of hops and from");
  return hops === undefined ? trustNetworks(from, header) : trustHops(hops, header);
}

function trustHops(option: unknown, header: unknown): Trust {
  const hops = wholeNumber("INVALID_OPTION", "trustProxy", option, 1, LONGEST_CHAIN);
  return { header: checkHeader(header), trusts: (_, hop) => hop < hops };
}

function trustNetworks(option: unknown, header: unknown): Trust {
  if (!Array.isArray(option) || option.length === 0) {
    refuseOption(`trustProxy's CIDRs must be a list such as ["10.0.0.0/8"]; got ${show(option)}`);
  }
  const networks = option.map((text: unknown): Network => {
    const network = typeof text === "string" ? parseNetwork(text) : undefined;
    return network ?? refuseOption(`trustProxy has ${show(text)}, which is neither an address nor a CIDR`);
  });
  const trusts = (address: Address | undefined) =>
    address !== undefined && networks.some((network) => contains(network, address));
  return { header: checkHeader(header), trusts };
}

function checkHeader(header: unknown = "x-forwarded-for"): string {
  if (typeof header === "string" && /^[\w-]+$/.test(header)) return header.toLowerCase();
  return refuseOption(`trustProxy's header must be a header's name; got ${show(header)}`);
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
