/** gaps §8 over several processes: a repeat is recognised whichever process gets it. */
import { describe, expect, test } from '@jest/globals';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { createIdentities, createIdsUnder } from '../../shared/http/idempotency.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { timesOf } from '../support/long-run-share.ts';
import {
  type CommandResponse,
  idOf,
  locatedId,
  NO_RETRIES,
  SECRET,
} from '../support/service-in-process.ts';
import { kindsOf, processesOfTests } from '../support/two-command-processes.ts';

let keys = 0;
const newKey = (): string => `key-${++keys}`;

const processes = await processesOfTests(NO_RETRIES);

describe('gaps §8: a repeat under a key, in another process', () => {
  test('a create that another process carries out under the key is waited for and replayed', async () => {
    const { a, b } = processes;
    const key = newKey();
    const held = await a.faults.hold(() => a.create({}, { key }));
    const repeat = b.create({}, { key });
    held.release();
    expect((await repeat).text).toBe((await held.response).text);
    expect((await repeat).headers).toMatchObject({ 'idempotent-replayed': 'true' });
    expect(await kindsOf(processes, idOf(await repeat))).toEqual(['AUTHORIZE']);
  });

  test('a create whose append loses to its own repeat elsewhere responds with the stored payment', async () => {
    const { a, b } = processes;
    const key = newKey();
    // b has found no payment under the key; before b appends, a creates it.
    b.store.beforeAppend = async () => {
      b.store.beforeAppend = undefined;
      await a.create({}, { key });
    };
    const repeat = await b.create({}, { key });
    expect([repeat.status, repeat.headers['idempotent-replayed']]).toEqual([200, 'true']);
    expect(await kindsOf(processes, idOf(repeat))).toEqual(['AUTHORIZE']);
  });

  test('a key is free where the call of the other process was never sent: the repeat charges', async () => {
    const { a, b } = processes;
    const key = newKey();
    a.faults.next('not sent');
    b.store.beforeAppend = async () => {
      b.store.beforeAppend = undefined;
      await a.create({}, { key });
    };
    const second = await b.create({}, { key });
    expect(second.status).toBe(200);
    expect(second.headers).not.toHaveProperty('idempotent-replayed');
    expect((await a.create({}, { key })).text).toBe(second.text);
    expect(await kindsOf(processes, idOf(second))).toEqual(['AUTHORIZE']);
  });

  test('a key is free after a thousand attempts that were never sent', async () => {
    const { a, b, store } = processes;
    const key = newKey();
    a.faults.next('not sent');
    const first = await store.readStream(streamOf(locatedId(await a.create({}, { key }))));
    const identities = createIdentities([SECRET]);
    const attempted = Array.from({ length: 999 }, (_, n) => {
      const ids = createIdsUnder(identities, 'm_test', key, n + 2);
      const idsOf = ({ type }: RecordedEvent['event']) =>
        type === 'PaymentCreated' ? ids : { operationId: ids.operationId };
      const events = first.map(({ event, time, context }) => ({
        id: crypto.randomUUID(),
        time,
        event: { ...event, data: { ...event.data, ...idsOf(event) } } as typeof event,
        context,
      }));
      return store.append(streamOf(ids.paymentId), 'none', events);
    });
    await Promise.all(attempted);
    const created = await b.create({}, { key });
    expect(created.status).toBe(200);
    expect(idOf(created)).toBe(createIdsUnder(identities, 'm_test', key, 1_001).paymentId);
  });

  test.each(['capture', 'void', 'refund'])(
    'a %s whose append loses to its own repeat elsewhere is replayed, and carried out once',
    async (change) => {
      const { a, b } = processes;
      const key = newKey();
      const id = idOf(await a.create({ captureNow: change === 'refund' }));
      const body = change === 'refund' ? { refundAmount: 500 } : undefined;
      let first: CommandResponse | undefined;
      // b has found nothing under the key; before b appends, a has carried the command out.
      b.store.beforeAppend = async () => {
        b.store.beforeAppend = undefined;
        first = await a.change(change, id, body, { key });
      };
      const second = await b.change(change, id, body, { key });
      expect([first?.status, second.text]).toEqual([200, first?.text]);
      expect(second.headers).toMatchObject({ 'idempotent-replayed': 'true' });
      expect(await kindsOf(processes, id)).toHaveLength(2);
    },
  );

  test('16 equal refunds under one key, sent to both processes at once: one refund, one body', async () => {
    const { a, b } = processes;
    for (let round = 0; round < timesOf(5, 1); round += 1) {
      const key = newKey();
      const id = idOf(await a.create({ captureNow: true }));
      const responses = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          (n % 2 ? a : b).change('refund', id, { refundAmount: 100 }, { key }),
        ),
      );
      expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(await kindsOf(processes, id)).toEqual(['SALE', 'REFUND']);
    }
  });

  test('64 equal creates under one key, sent to both processes at once: one charge, one body', async () => {
    const { a, b } = processes;
    const key = newKey();
    const responses = await Promise.all(
      Array.from({ length: 64 }, (_, n) => (n % 2 ? a : b).create({}, { key })),
    );
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(responses[0]?.status).toBe(200);
    expect(await kindsOf(processes, JSON.parse(responses[0]?.text ?? '').paymentId)).toHaveLength(
      1,
    );
  });
});
