import { type DestinationStream, type Logger, pino } from "pino";
import pretty from "pino-pretty";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** JSON lines; on a terminal, lines for people. Secrets that stray into an entry are not written. */
export function createLog(level: LogLevel, isTerminal = process.stdout.isTTY === true): Logger {
  const redact = ["*.url", "*.token", "*.authorization", "token", "authorization", "headers.authorization"];
  const options = { level, redact };
  if (!isTerminal) return pino(options);
  return pino(
    options,
    pretty({
      sync: true,
      singleLine: true,
      ignore: "pid,hostname",
      translateTime: "HH:MM:ss",
    }) as DestinationStream,
  );
}
