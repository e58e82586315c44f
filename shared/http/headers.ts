/**
 * The one value of a header; undefined when it is not there, null when it is there more than once.
 * Node's own `headers` keep the first of two silently. `name` is in lower case.
 */
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
