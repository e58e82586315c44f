/**
 * Texts of a person that exist nowhere else, one in each sealed field, and the search for them in whatever was kept
 * or sent (gaps §19).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MaskedCard } from '../../shared/payment/fields.ts';
import { takeApart } from '../../shared/payment/response.ts';
import { everyDetail, textsIn } from './every-detail.ts';
import { payment } from './service-in-process.ts';

/** Of each place another, none a part of another. */
const canary = (place: string): string => `Čanary ${place} ý`;
const details = everyDetail(canary);
export const HOLDER = canary('holder');
export const REASON = canary('reason');
export const EMAIL = String(details.consumer?.email);
const { group } = takeApart({ card: { holderName: HOLDER } as MaskedCard, details });
/** Two letters of a country are in any file by chance. */
export const CANARIES = [...textsIn(group), REASON].filter((text) => text.length > 2);
/** The details of a request that a box takes. */
export const PERSONAL = Object.fromEntries(
  Object.entries(details).filter(([name]) => name in group || name === 'productItems'),
);

/** A sale with all of them, but for the reason of a change; by another card, or with other fields, where given. */
export const canaryBody = (fields: object = {}) => {
  const given = { captureNow: true, ...details, ...fields };
  const body = payment(given) as { paymentMethod: { card: object } };
  Object.assign(body.paymentMethod.card, { holderName: HOLDER });
  return body;
};

/** As a text could stand anywhere: UTF-8, UTF-16, base64 at each offset, hex, escaped, in an address. */
const formsOf = (text: string): string[] => {
  const bytes = Buffer.from(text);
  const inBase64 = [0, 1, 2].flatMap((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    return (['base64', 'base64url'] as const).map((form) => shifted.toString(form).slice(4, -4));
  });
  const wide = Buffer.from(text, 'utf16le');
  const asBytes = [bytes, wide, Buffer.from(wide).swap16()].map((one) => one.toString('latin1'));
  const escaped = text.replace(
    /[^\x20-\x7e]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [text, ...asBytes, ...inBase64, bytes.toString('hex'), escaped, encodeURIComponent(text)];
};

/** What was kept or sent, by the name of its place: a text, or bytes as latin1. */
export type Place = [name: string, kept: string];

export const filesIn = (folder: string): Place[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => [name, readFileSync(join(parentPath, name), 'latin1')]);

/** Each text of a person that one of the places holds, in whatever form and case. */
export const findings = (places: Iterable<Place>): string[] => {
  const all = [...places].map(([name, kept]) => [name, kept.toLowerCase()] as const);
  return CANARIES.flatMap((text) => {
    const forms = formsOf(text).map((form) => form.toLowerCase());
    const found = all.filter(([, kept]) => forms.some((form) => kept.includes(form)));
    return found.map(([name]) => `${text} in ${name}`);
  });
};
