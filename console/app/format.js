/** How the console writes amounts, times and places. The command line writes them the same way. */

/**
 * Minor units as money: 1500 in USD is `15.00 USD`.
 * @param {number} amountMinor
 * @param {string} currency
 */
export const money = (amountMinor, currency) => `${(amountMinor / 100).toFixed(2)} ${currency}`;

/**
 * Major units that somebody typed, as minor units; undefined where the text is no amount of at most
 * two decimals.
 * @param {string} text
 * @returns {number | undefined}
 */
export const minorOf = (text) => {
  const [, units, decimals = ''] = /^\s*([0-9]{1,12})(?:[.,]([0-9]{1,2}))?\s*$/.exec(text) ?? [];
  return units === undefined ? undefined : Number(units + decimals.padEnd(2, '0'));
};

/**
 * Date and time of day of an RFC 3339 time in UTC, with milliseconds.
 * @param {string} time
 */
export const utc = (time) => `${time.slice(0, 10)} ${time.slice(11, 23)}`;

/**
 * The time in the reader's own zone, for the hover.
 * @param {string} time
 */
export const localTime = (time) => `${new Date(time).toLocaleString()} here`;

/** Milliseconds of the units from which a duration is written in them. */
const UNITS = [
  { unit: 'd', ms: 86_400_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'min', ms: 60_000 },
  { unit: 's', ms: 1_000 },
];

/**
 * A duration in its two largest units: `2 min 5 s`, `320 ms`.
 * @param {number} ms
 */
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

/**
 * A count with separators of thousands.
 * @param {number} count
 */
export const counted = (count) => count.toLocaleString('en-US');

/**
 * A place in the log in words, as the command line prints it.
 * @param {{ position: string, stream: string, revision: number, reason: string }} broken
 */
export const brokenPlace = ({ position, stream, revision, reason }) =>
  `${position === '' ? '' : `#${position}, `}${stream} revision ${revision}: ${reason}`;

/**
 * A path with its query; empty and undefined parameters are left out.
 * @param {string} path
 * @param {Record<string, string | number | undefined>} [parameters]
 */
export const pathOf = (path, parameters = {}) => {
  const given = Object.entries(parameters).filter(
    ([, value]) => value !== undefined && value !== '',
  );
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return query === '' ? path : `${path}?${query}`;
};
