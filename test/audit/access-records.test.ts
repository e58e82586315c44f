/** ADR-0011: every read by an auditor is recorded, and a read that cannot be recorded is rejected. */
import { describe, expect, test } from '@jest/globals';
import type { FastifyRequest } from 'fastify';
import { createRecorder } from '../../audit/access-recorder.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';

const principal = { merchantId: 'm_1', actor: 'auditor', scopes: undefined };
const request = (query: object = {}) =>
  ({ id: 'request-1', query, principal }) as unknown as FastifyRequest;

const readingsOf = async (store: ReturnType<typeof memoryEventStore>) =>
  (await store.readAll(null, 100)).flatMap((event) => ('event' in event ? [event] : []));

describe('ADR-0011: the record of a read', () => {
  test('holds who read what and when, in one stream of this process', async () => {
    const store = memoryEventStore();
    const record = createRecorder(store);
    await record(request({ at: '2026-01-01T00:00:00Z' }), { action: 'STATE', paymentId: 'pay_1' });
    await Promise.all([
      record(request(), { action: 'LOG' }),
      record(request(), { action: 'STREAM' }),
    ]);
    const readings = await readingsOf(store);
    expect(readings.map(({ revision }) => revision)).toEqual([0, 1, 2]);
    expect(new Set(readings.map(({ stream }) => stream)).size).toBe(1);
    expect(readings[0]).toMatchObject({
      context: { actor: 'auditor', requestId: 'request-1' },
      event: {
        type: 'AuditAccessed',
        data: {
          action: 'STATE',
          merchantId: 'm_1',
          paymentId: 'pay_1',
          parameters: 'at=2026-01-01T00%3A00%3A00Z',
        },
      },
    });
  });

  test.each([
    ['4242424242424242', '...4242'],
    ['4242 4242 4242 4242', '...4242'],
    ['4242-4242-4242-4242', '...4242'],
    ['4242  4242  4242  4242', '...4242'],
    ['4242\u00a04242\u20134242\u200b4242', '...4242'],
    ['order-12345678901', 'order-12345678901'],
  ])('gaps §4: a search for %s is recorded as %s', async (q, kept) => {
    const store = memoryEventStore();
    await createRecorder(store)(request({ q }), { action: 'SEARCH' });
    const [reading] = await readingsOf(store);
    expect(reading?.event.data).toMatchObject({ parameters: `q=${kept}` });
  });

  test('gaps §4: an id that could be a card number is cut to its last four digits', async () => {
    const store = memoryEventStore();
    const access = { action: 'EVENTS', paymentId: '4242424242424242' } as const;
    await createRecorder(store)(request(), access);
    const [reading] = await readingsOf(store);
    expect(reading?.event.data).toEqual({
      action: 'EVENTS',
      merchantId: 'm_1',
      parameters: 'paymentId=...4242',
    });
  });

  test('begins with the searched text, however long the other parameters are', async () => {
    const store = memoryEventStore();
    const query = { cursor: 'x'.repeat(5000), q: 'order-1', merchant: 'm_2' };
    await createRecorder(store)(request(query), { action: 'SEARCH' });
    const [reading] = await readingsOf(store);
    expect(reading?.event.data).toMatchObject({
      parameters: expect.stringMatching(/^q=order-1&merchant=m_2&cursor=x+$/),
    });
  });

  test('is stored once when the response of the event store is lost', async () => {
    const store = memoryEventStore();
    const record = createRecorder(store);
    store.loseNextResponse();
    await record(request(), { action: 'LOG' });
    await record(request(), { action: 'LOG' });
    expect((await readingsOf(store)).map(({ revision }) => revision)).toEqual([0, 1]);
  });

  test('a read is rejected while its record cannot be stored, and accepted afterwards', async () => {
    const store = memoryEventStore();
    let full = true;
    const record = createRecorder({
      append: async (...args) => {
        if (full) throw new StoreUnavailable('the disk is full');
        return store.append(...args);
      },
    });
    await expect(record(request(), { action: 'LOG' })).rejects.toThrow(StoreUnavailable);
    full = false;
    await record(request(), { action: 'LOG' });
    expect(await readingsOf(store)).toHaveLength(1);
  });
});
