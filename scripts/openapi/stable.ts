/**
 * Makes recorded bodies the same at every run: ids and hashes are numbered in the order in which
 * they come, times stand one second apart. Everything else stays as the service said it.
 */
const NOON_MS = Date.UTC(2026, 0, 1, 12);
/** The time of the numbered ids: the same noon. */
const ULID_TIME = '01KDX3CP00';
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** A keyed hash hangs on the payment's id, so it changes with it. */
const KEYED_HASH = '(?<="(?:fingerprint|keyHash)":")[\\w-]{43}(?=")';
const WHOLE = `(?<![0-9A-Za-z])(?:[0-9a-f]{64}|${UUID}|[0-9A-HJKMNP-TV-Z]{26})(?![0-9A-Za-z])`;
const EVERY_ID = new RegExp(`${KEYED_HASH}|${WHOLE}`, 'g');
/** The hash before the first event of a stream. */
const NO_HASH = '0'.repeat(64);
const EVERY_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;

const at = (seconds: number): string => new Date(NOON_MS + seconds * 1000).toISOString();

/** A numbered id of the same form. */
const numbered = (id: string, number: number): string => {
  if (id.length === 26) return ULID_TIME + String(number).padStart(16, '0');
  if (id.length === 43) return String(number).padStart(43, '0');
  if (id.length === 64) return number.toString(16).padStart(64, '0');
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
};

/** Ids keep their number over all bodies of one run. */
const idNumbers = (): ((text: string) => string) => {
  const known = new Map<string, string>([[NO_HASH, NO_HASH]]);
  const idOf = (id: string): string => {
    const stable = known.get(id) ?? numbered(id, known.size);
    known.set(id, stable);
    return stable;
  };
  return (text) => text.replace(EVERY_ID, idOf);
};

type Json = Record<string, unknown>;

/** For bodies of the contract: a payment's times follow its transactions. */
export const stabilizer = (): ((body: unknown) => unknown) => {
  const withIds = idNumbers();
  const cursorOf = (cursor: string): string => {
    const text = Buffer.from(cursor, 'base64url').toString();
    return Buffer.from(withIds(text).replace(EVERY_TIME, at(0))).toString('base64url');
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
  return (body) => JSON.parse(withIds(JSON.stringify(timed(body as Json))));
};

/** For bodies of any form: the times of one body are a second apart, in the order of its text. */
export const stabilizerOfAll = (): ((body: unknown) => unknown) => {
  const withIds = idNumbers();
  return (body) => {
    let seconds = 0;
    const nextTime = (): string => at(seconds++);
    return JSON.parse(withIds(JSON.stringify(body)).replace(EVERY_TIME, nextTime));
  };
};
