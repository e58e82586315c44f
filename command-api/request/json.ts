/** The names of amounts in a request, and `details` on a broken contract (gaps §3). */
import type { z } from 'zod';
import { fieldName, REQUIRED } from '../../shared/http/fields.ts';
import type { JsonObject } from '../../shared/http/request.ts';

/** 25.00 is a sum in dollars more often than 25 cents, so none of these may have a decimal point (gaps §3). */
export const AMOUNTS = ['amount', 'captureAmount', 'refundAmount'];

/** The same for each spelling of a name (gaps §3). */
export const plainName = (name: string): string => name.replace(/[_-]/g, '').toLowerCase();

const GIVEN_ONCE = [...AMOUNTS, 'currency', 'captureNow'];
const ONCE_BY_PLAIN_NAME = new Map(GIVEN_ONCE.map((field) => [plainName(field), field]));

/** No amount may win by its place (gaps §3). `repeated`: names that the text has once more than the body. */
export const givenTwice = (body: JsonObject, repeated: readonly string[]): string[] => {
  const given = new Set<string>();
  const twice = new Set<string>();
  for (const name of [...Object.keys(body), ...repeated]) {
    const field = ONCE_BY_PLAIN_NAME.get(plainName(name));
    if (field !== undefined) (given.has(field) ? twice : given).add(field);
  }
  return [...twice];
};

/** The required leaves of the objects that are required themselves (gaps §3). */
const CARD_LEAVES = ['number', 'holderName', 'expiryMonth', 'expiryYear'].map(
  (name) => `paymentMethod.card.${name}`,
);
const LEAVES: Readonly<Record<string, readonly string[]>> = {
  paymentMethod: ['paymentMethod.type', ...CARD_LEAVES],
  'paymentMethod.card': CARD_LEAVES,
};

/** One detail per field, in the contract's order. A card is only required where the type is CARD. */
export const detailsOf = (issues: readonly z.core.$ZodIssue[]): string[] => {
  const wordings = new Map<string, string>();
  for (const { path, message } of issues) {
    const field = fieldName(path);
    const typeIsWrong = (wordings.get('paymentMethod.type') ?? REQUIRED) !== REQUIRED;
    if (field === 'paymentMethod.card' && message === REQUIRED && typeIsWrong) continue;
    const named = message === REQUIRED ? (LEAVES[field] ?? [field]) : [field];
    for (const name of named) if (!wordings.has(name)) wordings.set(name, message);
  }
  return [...wordings].map(([field, wording]) => `${field} ${wording}`);
};
