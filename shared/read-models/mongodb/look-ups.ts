/**
 * Look-ups of documents by id that share calls: a call of the client costs more than all else of a
 * GET, and one for many ids hardly more than one for a single id.
 */

/**
 * A look-up of one document. One call is under way at a time, and the look-ups that come meanwhile
 * share the next one, so that each is read after it came. A call that fails fails for all that share it.
 */
export const shareLookUps = <T extends { _id: string }>(
  findAll: (ids: string[]) => Promise<T[]>,
): ((id: string) => Promise<T | undefined>) => {
  let running: Promise<unknown> = Promise.resolve();
  let next: { ids: Set<string>; found: Promise<Map<string, T>> } | undefined;

  const begin = () => {
    const ids = new Set<string>();
    const found = running.then(async () => {
      // Who comes from now on could get a document that was read before.
      next = undefined;
      return new Map((await findAll([...ids])).map((document) => [document._id, document]));
    });
    running = found.catch(() => undefined);
    return { ids, found };
  };

  return async (id) => {
    next ??= begin();
    next.ids.add(id);
    return (await next.found).get(id);
  };
};
