/** Where to listen. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `host:port` or `[v6]:port`; undefined when it is neither. */
export function parseAddress(text: string): Address | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([\da-fA-F:.]+)\]|([\w.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

export function writeAddress({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether only this machine can reach the address. A name other than localhost may be anything. */
export function isLoopback({ host }: Address): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
