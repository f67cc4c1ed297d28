/** A matcher of a text with `*` for any characters, in linear time whatever the text. */
export function wildcard(pattern: string): (text: string) => boolean {
  const pieces = pattern.split("*");
  const first = pieces[0] as string;
  const last = pieces.at(-1) as string;
  const middle = pieces.slice(1, -1);
  return (text) => {
    if (text.length < first.length + last.length) return false;
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    const end = text.length - last.length;
    let at = first.length;
    for (const piece of middle) {
      const found = text.indexOf(piece, at);
      if (found < 0 || found + piece.length > end) return false;
      at = found + piece.length;
    }
    return true;
  };
}
