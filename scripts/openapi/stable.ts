/**
 * Makes recorded answers the same at every run: ids are numbered in the order in which they come,
 * times stand one second apart. Everything else stays as the service said it.
 */
const NOON_MS = Date.UTC(2026, 0, 1, 12);
const ULID = /(pay|AUTH|SALE|CAPT|VOID|REFN)_[0-9A-HJKMNP-TV-Z]{26}/g;
/** The time of the numbered ids: the same noon. */
const ULID_TIME = '01KDX3CP00';

const at = (seconds: number): string => new Date(NOON_MS + seconds * 1000).toISOString();

type Json = Record<string, unknown>;

/** Replaces ids and times in bodies; ids keep their number over all bodies of one run. */
export const stabilizer = (): ((body: unknown) => unknown) => {
  const numbers = new Map<string, string>();
  const idOf = (id: string): string => {
    const [prefix = ''] = id.split('_');
    const known = numbers.get(id) ?? String(numbers.size + 1).padStart(16, '0');
    numbers.set(id, known);
    return `${prefix}_${ULID_TIME}${known}`;
  };
  const cursorOf = (cursor: string): string => {
    const text = Buffer.from(cursor, 'base64url').toString();
    const renamed = text.replace(ULID, idOf).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, at(0));
    return Buffer.from(renamed).toString('base64url');
  };

  const timed = (body: Json): Json => {
    const transactions = Array.isArray(body.transactions) ? (body.transactions as Json[]) : [];
    return {
      ...body,
      ...('timestamp' in body && { timestamp: at(0) }),
      ...('createdAt' in body && { createdAt: at(0) }),
      ...('updatedAt' in body && { updatedAt: at(transactions.length) }),
      ...('transactions' in body && {
        transactions: transactions.map((one, index) => ({ ...one, createdAt: at(index + 1) })),
      }),
      ...(Array.isArray(body.payments) && { payments: (body.payments as Json[]).map(timed) }),
      ...(typeof body.nextCursor === 'string' && { nextCursor: cursorOf(body.nextCursor) }),
    };
  };

  return (body) => {
    if (typeof body !== 'object' || body === null) return body;
    return JSON.parse(JSON.stringify(timed(body as Json)).replace(ULID, idOf));
  };
};

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** A keyed hash hangs on the payment's id, so it changes with it. */
const KEYED_HASH = '(?<="(?:fingerprint|keyHash)":")[\\w-]{43}(?=")';
const WHOLE = `(?<![0-9A-Za-z])(?:[0-9a-f]{64}|${UUID}|[0-9A-HJKMNP-TV-Z]{26})(?![0-9A-Za-z])`;
const EVERY_ID = new RegExp(`${KEYED_HASH}|${WHOLE}`, 'g');
/** The hash before the first event of a stream. */
const NO_HASH = '0'.repeat(64);
const EVERY_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;

const UUID_DIGITS = 12;

/** A numbered id of the same form. */
const numbered = (id: string, number: number): string => {
  if (id.length === 26) return ULID_TIME + String(number).padStart(16, '0');
  if (id.length === 43) return String(number).padStart(43, '0');
  if (id.length === 64) return number.toString(16).padStart(64, '0');
  return `00000000-0000-4000-8000-${String(number).padStart(UUID_DIGITS, '0')}`;
};

/**
 * The same for bodies of any form: every id, hash and time wherever it stands. The times of one
 * body are a second apart, in the order in which they are read.
 */
export const stabilizerOfAll = (): ((body: unknown) => unknown) => {
  const known = new Map<string, string>();
  const idOf = (id: string): string => {
    if (id === NO_HASH) return id;
    const stable = known.get(id) ?? numbered(id, known.size + 1);
    known.set(id, stable);
    return stable;
  };
  return (body) => {
    let seconds = 0;
    const nextTime = (): string => {
      seconds += 1;
      return at(seconds - 1);
    };
    return JSON.parse(JSON.stringify(body).replace(EVERY_ID, idOf).replace(EVERY_TIME, nextTime));
  };
};
