/** Amounts, times and places, as the command line writes them. */

/** @type {(amount: number, currency: string) => string} 1500 in USD is `15.00 USD` */
export const money = (amount, currency) => `${(amount / 100).toFixed(2)} ${currency}`;

/** @type {(text: string) => number | undefined} minor units of a typed amount with at most two decimals */
export const minorOf = (text) => {
  const [, units, decimals = ''] = /^\s*([0-9]{1,12})(?:[.,]([0-9]{1,2}))?\s*$/.exec(text) ?? [];
  return units === undefined ? undefined : Number(units + decimals.padEnd(2, '0'));
};

/** @param {string} time RFC 3339, in UTC */
export const utc = (time) => `${time.slice(0, 10)} ${time.slice(11, 23)}`;

/** @param {string} time */
export const localTime = (time) => `${new Date(time).toLocaleString()} here`;

const UNITS = [
  { unit: 'd', ms: 86_400_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'min', ms: 60_000 },
  { unit: 's', ms: 1_000 },
];

/** @param {number} ms in its two largest units: `2 min 5 s`, `320 ms` */
export const duration = (ms) => {
  const at = UNITS.findIndex((one) => ms >= one.ms);
  const largest = UNITS[at];
  if (largest === undefined) return `${Math.round(ms)} ms`;
  const next = UNITS[at + 1];
  const count = Math.floor(ms / largest.ms);
  if (next === undefined) return `${(ms / 1000).toFixed(1)} s`;
  const rest = Math.floor((ms - count * largest.ms) / next.ms);
  return rest === 0 ? `${count} ${largest.unit}` : `${count} ${largest.unit} ${rest} ${next.unit}`;
};

/** @param {number} count */
export const counted = (count) => count.toLocaleString('en-US');

/** @type {(count: number, what: string) => string} `1 event`, `1,001 events` */
export const numberOf = (count, what) => `${counted(count)} ${what}${count === 1 ? '' : 's'}`;

/** @type {(path: string, parameters?: Record<string, string | number | undefined>) => string} leaves out empty parameters */
export const pathOf = (path, parameters = {}) => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== '') query.set(name, String(value));
  return query.size === 0 ? path : `${path}?${query}`;
};

/** @type {(id: string, revision?: number) => string} the page of a payment, at a revision */
export const paymentPage = (id, revision) =>
  pathOf(`/console/payments/${encodeURIComponent(id)}`, { revision });

/** @type {(id: string, name: string, parameters?: Parameters<typeof pathOf>[1]) => string} an audit route of a payment */
export const paymentRoute = (id, name, parameters) =>
  pathOf(`/audit/v1/payments/${encodeURIComponent(id)}/${name}`, parameters);

/** How numbers of the brands begin that the service knows (shared/payment/card.ts). */
const CARD_START = /^(?:1800|2131|2[2-7]|[3-6]|8)/;

/** @param {string} digits */
const isCardNumber = (digits) => {
  if (digits.length < 12 || digits.length > 19 || !CARD_START.test(digits)) return false;
  // Numbers of UnionPay need no check digit.
  if (digits.length >= 14 && /^(?:62|81)/.test(digits)) return true;
  const sum = [...digits].reverse().reduce((before, digit, at) => {
    const value = Number(digit) * (at % 2 === 0 ? 1 : 2);
    return before + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
};

const DECIMAL = /\p{Nd}/u;

/** @param {string} digit of any script */
const asciiDigit = (digit) => {
  const code = digit.codePointAt(0) ?? 0;
  let zero = code;
  while (DECIMAL.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return String((code - zero) % 10);
};

/**
 * A card number as shared/runtime/card-numbers.ts finds one: it must not leave the browser in an address.
 * @type {(text: string) => string | undefined}
 */
export const cardNumberIn = (text) => {
  for (const part of text.normalize('NFKC').split(/\p{L}/u)) {
    const blocks = part.replace(/\p{Nd}/gu, asciiDigit).match(/[0-9]+/g) ?? [];
    for (const from of blocks.keys()) {
      for (let to = blocks.length; to > from; to -= 1) {
        const digits = blocks.slice(from, to).join('');
        if (isCardNumber(digits)) return digits;
      }
    }
  }
  return undefined;
};
