// @ts-check
const WIDTH = 30;

/**
 * A bar that is redrawn in place on a terminal; elsewhere one line per label.
 * @param {NodeJS.WriteStream} [stream]
 */
export function progressBar(stream = process.stderr) {
  const started = process.hrtime.bigint(); // time may be virtual
  let last = "";
  return {
    /**
     * @param {string} label
     * @param {number} share from 0 to 1
     */
    show(label, share) {
      if (stream.isTTY) {
        const full = Math.round(Math.min(1, share) * WIDTH);
        const seconds = Number((process.hrtime.bigint() - started) / 1_000_000_000n);
        const bar = `${"█".repeat(full)}${"░".repeat(WIDTH - full)}`;
        stream.write(`\r\x1b[2K${bar} ${Math.floor(share * 100)}%  ${seconds} s  ${label}`);
      } else if (label !== last) {
        stream.write(`${label}\n`);
      }
      last = label;
    },
    end() {
      if (stream.isTTY) stream.write("\r\x1b[2K");
    },
  };
}
