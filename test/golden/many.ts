/**
 * A folder of many payments that is the same wherever it is made: ids and times follow from a number. What
 * is kept of it are digests.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { GENESIS_HASH, hashOf, linkLog } from '../../shared/event-store/chain.ts';
import { canonicalJson } from '../../shared/event-store/codec.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/events.ts';
import { newEvent, wholeLife } from '../support/payment-events.ts';

const START_MS = Date.parse('2026-01-01T00:00:00.000Z');

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

/** As it was stored then, with the name of the holder in the clear. */
const ofVersion1 = ({ type, data }: PaymentEvent) => {
  if (type !== 'PaymentCreated') return data;
  const { personal: _sealed, card, ...others } = data;
  return { ...others, card: { ...card, holderName: 'Jane Doe' } };
};

/** Writes the log of `count` payments, one after another, each with its whole life, by the file's own form. */
export const writeMany = async (folder: string, count: number): Promise<void> => {
  const file = join(folder, 'events.sqlite');
  await (await openSqliteEventStore({ file })).close();
  using db = new DatabaseSync(file);
  const addStream = db.prepare('INSERT INTO streams VALUES (?, ?)');
  const addEvent = db.prepare('INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)');
  let [number, logHash] = [0, GENESIS_HASH];
  db.exec('BEGIN');
  for (let n = 0; n < count; n += 1) {
    const stream = streamOf(paymentIdOf(n));
    addStream.run(n + 1, stream);
    let previousHash = GENESIS_HASH;
    for (const [revision, event] of wholeLife(paymentIdOf(n), merchantOf(n)).entries()) {
      number += 1;
      const { context } = newEvent(event);
      const place = { id: idOf(number), previousHash, revision, schemaVersion: 1, stream };
      const time = new Date(START_MS + number * 1000).toISOString();
      const data = ofVersion1(event);
      const text = canonicalJson({ context, data, ...place, time, type: event.type });
      previousHash = hashOf(text);
      logHash = linkLog(logHash, previousHash);
      addEvent.run(number, n + 1, revision, place.id, previousHash, logHash, text);
    }
  }
  db.exec('COMMIT');
};
