/** The merchant's own names and values (gaps §22). They cannot be erased, and go to topics and webhooks. */
import { shortText } from '../../shared/http/fields.ts';
import { METADATA_NAME } from '../../shared/payment/payment-events.ts';
import { holdsManyDigits } from '../../shared/runtime/card-numbers.ts';
import { isObject } from './json.ts';

const NAMES_MAX = 20;

/** As an e-mail address has it. */
const NAMES_A_PERSON = /\S@\S/;
const metadataValue = shortText().refine(
  (text) => !NAMES_A_PERSON.test(text),
  'must not hold personal data',
);

/** A details line names the name, so no name may hold a card number. */
const isAllowed = (name: string): boolean => METADATA_NAME.test(name) && !holdsManyDigits(name);

const faultOf = ([name, value]: [string, unknown]): string[] => {
  const { error } = metadataValue.safeParse(value);
  return error === undefined ? [] : [`metadata.${name} ${error.issues[0]?.message}`];
};

export const metadataFaults = (metadata: unknown): string[] => {
  if (metadata === undefined || metadata === null) return [];
  if (!isObject(metadata)) return ['metadata must be an object'];
  const entries = Object.entries(metadata);
  if (entries.length > NAMES_MAX) return [`metadata must have at most ${NAMES_MAX} names`];
  if (!entries.every(([name]) => isAllowed(name)))
    return ['metadata has a name that is not allowed'];
  return entries.flatMap(faultOf);
};

/** Without faults. In the order of stored events, so that bodies are equal to the byte. */
export const metadataKept = (metadata: unknown): { metadata?: Record<string, string> } => {
  const entries = Object.entries(metadata ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? {} : { metadata: Object.fromEntries(entries) };
};
