/**
 * A folder of many payments that is the same wherever it is made: ids and times follow from a number. What
 * is kept of it are digests.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { newEvent, wholeLife } from '../support/payment-events.ts';

const START_MS = Date.parse('2026-01-01T00:00:00.000Z');
const AT_A_TIME = 500;

/** A UUID that follows from a number. */
const idOf = (number: number): string => {
  const hex = createHash('sha256').update(`golden ${number}`).digest('hex');
  return [8, 4, 4, 4, 12]
    .reduce<[string[], number]>(
      ([parts, at], length) => [[...parts, hex.slice(at, at + length)], at + length],
      [[], 0],
    )[0]
    .join('-');
};

const merchantOf = (n: number): string => `m_${n % 7}`;
const paymentIdOf = (n: number): string => `pay_${String(n).padStart(26, '0')}`;

/** Writes the log of `count` payments, one after another, each with its whole life. */
export const writeMany = async (folder: string, count: number): Promise<void> => {
  const store = await openSqliteEventStore({ file: join(folder, 'events.sqlite') });
  let number = 0;
  for (let from = 0; from < count; from += AT_A_TIME) {
    const appends = Array.from({ length: Math.min(AT_A_TIME, count - from) }, (_, n) => {
      const paymentId = paymentIdOf(from + n);
      const events = wholeLife(paymentId, merchantOf(from + n)).map((event) => {
        number += 1;
        const time = new Date(START_MS + number * 1000).toISOString();
        return { ...newEvent(event, time), id: idOf(number) };
      });
      return store.append(streamOf(paymentId), 'none', events);
    });
    await Promise.all(appends);
  }
  await store.close();
};
