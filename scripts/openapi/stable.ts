/** Makes recorded bodies equal at every run: numbers ids and hashes in their order, and sets the times. */
const NOON_MS = Date.UTC(2026, 0, 1, 12);
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** These hashes depend on the payment's id. */
const KEYED_HASH = '(?<="(?:fingerprint|keyHash)":")[\\w-]{43}(?=")';
const WHOLE = `(?<![0-9A-Za-z])(?:[0-9a-f]{64}|${UUID}|[0-9A-HJKMNP-TV-Z]{26})(?![0-9A-Za-z])`;
/** Each folder makes its own sealing key. */
const KEY_ID = '(?<="trustedKeyId":")[0-9a-f]{16}(?=")';
const EVERY_ID = new RegExp(`${KEYED_HASH}|${KEY_ID}|${WHOLE}`, 'g');
const NO_HASH = '0'.repeat(64);
/** By the clock of the simulator, so it is no time of the service's own. */
const EXPIRY = /(?<="authorizationExpiresAt":")[^"]+/g;
const EXPIRES_AT = '2026-01-08T12:00:00Z';
const EVERY_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
/** A signing secret depends on the endpoint's id; this one is of the specification. */
const EVERY_SIGNING_SECRET = /whsec_[A-Za-z0-9+/=]+/g;
const SIGNING_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
/** Its address has a secret of the simulator's. */
const EVERY_PAGE = /http:\/\/localhost:\d+\/simulator\/authentications\/[\w-]+/g;
const PAGE = 'https://pay.example/authentications/mVkq0Zb2';
const WAITS_SECONDS = 900;
/** The beginning of a numbered id, by its length: of a ULID it is the time. */
const BEGINNINGS: Record<number, string> = { 26: '01KDX3CP00', 36: '00000000-0000-4000-8000-' };

const at = (seconds: number): string => new Date(NOON_MS + seconds * 1000).toISOString();

const numbered = ({ length }: string, number: number): string => {
  const beginning = BEGINNINGS[length] ?? '';
  const digits = number.toString(length === 64 ? 16 : 10);
  return beginning + digits.padStart(length - beginning.length, '0');
};

type Payment = { transactions?: object[]; updatedAt?: string };

/** For the bodies of one document, in their order. A payment's times follow its transactions. */
export const stabilizer = (): ((body: unknown) => unknown) => {
  const known = new Map<string, string>([[NO_HASH, NO_HASH]]);
  const idOf = (id: string): string => {
    const stable = known.get(id) ?? numbered(id, known.size);
    known.set(id, stable);
    return stable;
  };
  const stable = (text: string): string => text.replace(EVERY_TIME, at(0)).replace(EVERY_ID, idOf);
  const timed = (key: string, value: unknown): unknown => {
    if (key === 'expiresAt') return at(WAITS_SECONDS);
    // A difference of two times has to show one.
    if (key === 'now' && value === at(0)) return at(1);
    if (key === 'nextCursor') {
      const cursor = stable(Buffer.from(String(value), 'base64url').toString());
      return Buffer.from(cursor).toString('base64url');
    }
    if (key === 'transactions')
      return (value as object[]).map((one, index) => ({ ...one, createdAt: at(index + 1) }));
    const { transactions = [], updatedAt } = Object(value) as Payment;
    return updatedAt ? { ...Object(value), updatedAt: at(transactions.length) } : value;
  };
  return (body) => {
    const text = JSON.stringify(body)
      .replace(EVERY_SIGNING_SECRET, SIGNING_SECRET)
      .replace(EXPIRY, EXPIRES_AT)
      .replace(EVERY_PAGE, PAGE);
    return JSON.parse(stable(text), timed);
  };
};
