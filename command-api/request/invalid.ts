/** What `details` say of a body that breaks the contract: one detail a field, in its words. */
import type { z } from 'zod';
import { fieldName, REQUIRED } from '../../shared/http/fields.ts';

/** At most this many details: a client mends the first ones first. */
export const DETAILS_MAX = 100;

export type Invalid = { ok: false; details: string[] };

export const BODY_NOT_OBJECT = 'the body must be a JSON object';

export const invalid = (...details: string[]): Invalid => ({ ok: false, details });

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
  return [...wordings].slice(0, DETAILS_MAX).map(([field, wording]) => `${field} ${wording}`);
};
