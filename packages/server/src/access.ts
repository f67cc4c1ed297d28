// Who may do what. Tokens are kept and compared as digests, in constant time.
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Settings } from "./config/configuration.js";

/** read: look; decide: also take and settle; admin: also reset keys. */
export type Scope = "read" | "decide" | "admin";

const RANK: Readonly<Record<Scope, number>> = { read: 0, decide: 1, admin: 2 };

interface Token {
  readonly name: string;
  readonly scope: Scope;
  readonly digest: Buffer;
}

export type Verdict = "granted" | "unknown" | "forbidden";

/** Shorter tokens can be guessed. */
const SHORTEST = 16;

export class Access {
  readonly #tokens: readonly Token[];

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** Whether no token is asked for. */
  get isOpen(): boolean {
    return this.#tokens.length === 0;
  }

  /** Whether the value of an Authorization header grants the scope. */
  judge(authorization: string | undefined, scope: Scope): Verdict {
    if (this.isOpen) return "granted";
    const presented = /^Bearer ([\x21-\x7e]{1,4096})$/i.exec(authorization ?? "")?.[1];
    if (presented === undefined) return "unknown";
    const digest = sha256(presented);
    let granted: Token | undefined;
    // All are compared, so that the time tells nothing of which one matched.
    for (const token of this.#tokens) if (timingSafeEqual(token.digest, digest)) granted = token;
    if (granted === undefined) return "unknown";
    return RANK[granted.scope] >= RANK[scope] ? "granted" : "forbidden";
  }
}

/** The tokens that the settings name and, by the environment's own, SLUICE_TOKEN as an admin's. */
export function readAccess({ tokens = [] }: Settings, env: NodeJS.ProcessEnv = process.env): Access {
  const read = tokens.map(({ name, scope, env: variable, file, sha256: hex }): Token => {
    if (hex !== undefined) return { name, scope, digest: Buffer.from(hex, "hex") };
    const [source, secret] =
      variable !== undefined
        ? [`the environment variable ${variable}`, env[variable]]
        : [`the file ${file}`, readSecret(file as string)];
    return { name, scope, digest: sha256(checked(secret, `Token "${name}": ${source}`)) };
  });
  const own = env.SLUICE_TOKEN;
  if (own !== undefined && !tokens.some((token) => token.env === "SLUICE_TOKEN")) {
    read.push({ name: "SLUICE_TOKEN", scope: "admin", digest: sha256(checked(own, "SLUICE_TOKEN")) });
  }
  return new Access(read);
}

function readSecret(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}

function checked(secret: string | undefined, source: string): string {
  if (secret !== undefined && secret.length >= SHORTEST && /^[\x21-\x7e]+$/.test(secret)) return secret;
  throw new Error(
    `${source} must hold a token of at least ${SHORTEST} visible ASCII characters, such as \`openssl rand -hex 32\` makes.`,
  );
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
