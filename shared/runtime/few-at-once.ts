/** Look-ups of many, a few at a time: merchants are served meanwhile. */

const AT_ONCE = 4;

/** The results of `look`, in the order of the ids. Rejects as the first look that does. */
export const fewAtOnce = async <T>(
  ids: readonly string[],
  look: (id: string) => Promise<T>,
): Promise<T[]> => {
  const results: T[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE)
    results.push(...(await Promise.all(ids.slice(at, at + AT_ONCE).map(look))));
  return results;
};
