const AT_ONCE = 4;

/** In order, a few at a time, so that merchants are served meanwhile. */
export const fewAtOnce = async <T>(
  ids: readonly string[],
  look: (id: string) => Promise<T>,
): Promise<T[]> => {
  const results: T[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE)
    results.push(...(await Promise.all(ids.slice(at, at + AT_ONCE).map(look))));
  return results;
};
