/** Undefined when absent, null when repeated: Node's own `headers` silently keep the first of two. */
export const soleHeader = (
  rawHeaders: readonly string[],
  name: string,
): string | undefined | null => {
  let value: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at];
    if (header?.length !== name.length || header.toLowerCase() !== name) continue;
    if (value !== undefined) return null;
    value = rawHeaders[at + 1] ?? '';
  }
  return value;
};
