/** What the codec refuses to store, and what it makes of a stream as a whole (gaps §6). */
import { describe, expect, test } from '@jest/globals';
import {
  allReadable,
  canonicalJson,
  decode,
  encode,
  isReadable,
} from '../../shared/event-store/codec.ts';
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { foldStream, isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type {
  NewEvent,
  RecordedEvent,
  StoredForm,
  UnreadableEvent,
} from '../../shared/event-store/port.ts';
import { authorized, created, newEvent } from '../support/payment-events.ts';

const STREAM = 'payment-pay_1';
const encodeOne = (event: NewEvent) => encode(STREAM, 'none', [event]);
const storedAs = ({ text, recorded }: ReturnType<typeof encode>[number]): StoredForm => {
  const { stream, revision, hash } = recorded;
  return { position: '1', stream, revision, hash, text };
};
const stored = encode(STREAM, 'none', [newEvent(created()), newEvent(authorized())]).map(storedAs);
const events = stored.map((one) => decode(one)) as RecordedEvent[];

describe('encode', () => {
  test('takes a stream name of 200 letters, digits, hyphens and underscores', () => {
    const stream = `p-_9${'p'.repeat(196)}`;
    expect(encode(stream, 'none', [newEvent(created())])).toHaveLength(1);
  });

  const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
  test.each([
    ['id', { id: `x${id}` }],
    ['id', { id: `${id}x` }],
    ['time', { time: 'x2026-01-01T00:00:00.000Z' }],
    ['time', { time: '2026-01-01T00:00:00.000Zx' }],
    ['context.actor', { context: { ...newEvent(created()).context, actor: '' } }],
  ])('refuses an odd %s: %j', (place, change) => {
    expect(() => encodeOne({ ...newEvent(created()), ...change })).toThrow(
      new TypeError(`PaymentCreated does not fit its schema at ${place}`),
    );
  });

  test('refuses data of another shape, and names five places at most', () => {
    const nothing = newEvent({ type: 'PaymentCreated', data: 'x' } as never);
    expect(() => encodeOne(nothing)).toThrow(/schema at the object itself$/);
    const empty = newEvent({ type: 'PaymentCreated', data: {} } as never);
    expect(() => encodeOne(empty)).toThrow(/schema at (\w+, ){4}\w+$/);
  });
});

describe('decode', () => {
  test('reads the parsed object of a stored text like the text', () => {
    for (const form of stored) {
      const parsed = JSON.parse(form.text);
      expect(decode({ ...form, text: '' }, parsed)).toStrictEqual(decode(form));
      expect(canonicalJson(parsed)).toBe(form.text);
    }
  });
});

describe('a whole stream', () => {
  const place = { stream: STREAM, revision: 1, position: '2' };
  const unreadable: UnreadableEvent = { ...place, unreadable: 'is not JSON' };

  test('is its events where each can be read', () => {
    expect(events.map(isReadable)).toStrictEqual([true, true]);
    expect(allReadable(events)).toStrictEqual(events);
  });

  test('names its first unreadable event, and keeps those before it', () => {
    expect(isReadable(unreadable)).toBe(false);
    const read = (): unknown => allReadable([...events.slice(0, 1), unreadable, ...events]);
    expect(read).toThrow(UnreadableStream);
    expect(read).toThrow(`${STREAM}, revision 1: is not JSON`);
    expect(read).toThrow(expect.objectContaining({ before: events.slice(0, 1) }));
  });

  test('is folded, and is unreadable where the fold throws', () => {
    expect(foldStream(events, (all) => all.length)).toBe(2);
    const fold = (): never =>
      foldStream(events, () => {
        throw new Error('no such step');
      });
    expect(fold).toThrow(UnreadableStream);
    expect(fold).toThrow(`${STREAM}: no such step`);
  });

  test('is unreadable with an event of another family', () => {
    const [first] = events;
    if (first === undefined) throw new Error('nothing was decoded');
    const other = { ...first, event: { type: 'MerchantReferenceClaimed', data: {} } } as never;
    expect(isOfPayment(other)).toBe(false);
    expect(isOfPayment(first)).toBe(true);
    expect(() => foldStream([other], (all) => all)).toThrow(
      `${STREAM}: MerchantReferenceClaimed is not an event of a payment`,
    );
    expect(() => foldStream([], () => 0)).not.toThrow();
  });
});
