/** Filters, changes and collections of the stand-in for MongoDB: what the drivers of this project send. */

export type Document = Record<string, unknown>;
type Comparison = (stored: never, given: never) => boolean;

/** An error as the server names it. */
export const serverError = (code: number, errmsg: string) =>
  Object.assign(new Error(errmsg), { code });

const sameValue = (stored: unknown, given: unknown): boolean => (stored ?? null) === given;

const COMPARISONS: Record<string, Comparison> = {
  $eq: sameValue,
  $in: (stored: unknown, given: unknown[]) => given.includes(stored),
  $lt: (stored: number, given: number) => typeof stored === typeof given && stored < given,
  $lte: (stored: number, given: number) => typeof stored === typeof given && stored <= given,
  $gt: (stored: number, given: number) => typeof stored === typeof given && stored > given,
  $gte: (stored: number, given: number) => typeof stored === typeof given && stored >= given,
};

const fits = (stored: unknown, condition: unknown): boolean => {
  const isPlain = typeof condition !== 'object' || condition === null;
  if (isPlain) return sameValue(stored, condition);
  return Object.entries(condition).every(([operator, given]) => {
    const compare = COMPARISONS[operator];
    if (compare === undefined) throw serverError(2, `the stand-in does not know ${operator}`);
    return compare(stored as never, given as never);
  });
};

/** Whether a document is one that the filter finds. */
const matches = (document: Document, filter: Document): boolean =>
  Object.entries(filter).every(([name, condition]) => {
    if (name === '$and') return (condition as Document[]).every((one) => matches(document, one));
    if (name === '$or') return (condition as Document[]).some((one) => matches(document, one));
    return fits(document[name], condition);
  });

const DUPLICATE_KEY = 11000;

/** A collection: documents by id, in the order in which they were inserted. */
export type Collection = Map<unknown, Document>;

/** The documents that a filter finds; those of named ids are looked up. */
export const foundIn = (collection: Collection, filter: Document): Document[] => {
  const { _id } = filter as { _id?: string | { $in?: unknown[] } };
  const named = typeof _id === 'string' ? [_id] : _id?.$in;
  const candidates = named?.map((id) => collection.get(id)) ?? [...collection.values()];
  return candidates
    .filter((document) => document !== undefined)
    .filter((document) => matches(document, filter));
};

/** Throws a duplicate key's error. */
export const insertInto = (collection: Collection, document: Document): void => {
  if (collection.has(document._id)) throw serverError(DUPLICATE_KEY, 'E11000 duplicate key');
  collection.set(document._id, document);
};

/** What a document of these fields would be found by. */
const equalitiesOf = (filter: Document): Document =>
  Object.fromEntries(
    Object.entries(filter).filter(
      ([name, value]) => !name.startsWith('$') && typeof value !== 'object',
    ),
  );

const changed = (before: Document, change: Document, isNew: boolean): Document => {
  const { $set, $setOnInsert } = change as Record<string, Document | undefined>;
  if ($set === undefined && $setOnInsert === undefined) return { _id: before._id, ...change };
  return { ...before, ...$set, ...(isNew && $setOnInsert) };
};

/** Changes the first document that a filter finds, or adds one. Throws a duplicate key's error. */
export const updateIn = (
  collection: Collection,
  { q, u, upsert }: { q: Document; u: Document; upsert?: boolean },
): 'changed' | 'added' | 'none' => {
  const [found] = foundIn(collection, q);
  if (found !== undefined) collection.set(found._id, changed(found, u, false));
  else if (upsert) insertInto(collection, changed(equalitiesOf(q), u, true));
  else return 'none';
  return found === undefined ? 'added' : 'changed';
};

/** By one field after another, 1 or -1 each. */
export const sorted = (found: Document[], by: Record<string, 1 | -1>): Document[] =>
  found.toSorted((one, other) => {
    for (const [name, direction] of Object.entries(by)) {
      const [a, b] = [one[name] as string, other[name] as string];
      if (a !== b) return a < b ? -direction : direction;
    }
    return 0;
  });

/** The named fields, and the id. */
export const projected = (document: Document, fields: Document): Document => {
  const names = Object.keys(document).filter((name) => name === '_id' || fields[name] === 1);
  return Object.fromEntries(names.map((name) => [name, document[name]]));
};
