/** The first names of two fields of version 1 of outcome events, which installations hold. */
import type { EventType } from './events.ts';

const NAMES = new Map([
  ['cause', 'outcome'],
  ['settlement', 'resolution'],
]);
const TYPES: ReadonlySet<EventType> = new Set([
  'PaymentAuthorized',
  'PaymentCaptured',
  'PaymentVoided',
  'PaymentRefunded',
  'PaymentFailed',
  'PaymentCaptureDeclined',
  'PaymentVoidDeclined',
  'PaymentRefundDeclined',
]);

/** Stored data under today's names; the same object where it has them. */
export const withNamesOfToday = (type: EventType, version: number, data: unknown): unknown => {
  if (version !== 1 || !TYPES.has(type) || typeof data !== 'object' || data === null) return data;
  const names = Object.keys(data);
  if (!names.some((name) => NAMES.has(name))) return data;
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [NAMES.get(name) ?? name, value]),
  );
};
