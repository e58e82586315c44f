/**
 * The promises of shared/read-models/port.ts, asked of every driver.
 * P1 and P2 are the invariants "read model = fold of the events" and "a document never goes back".
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { bodyOf, foldReadModel, type PaymentReadModel } from '../../shared/payment/response.ts';
import {
  CheckpointMoved,
  ReadModelsUnavailable,
  RebuildRunning,
} from '../../shared/read-models/errors.ts';
import type {
  NextGeneration,
  PaymentSearch,
  ReadModelChange,
  ReadModels,
} from '../../shared/read-models/port.ts';
import {
  authorized,
  created,
  placed,
  refundRequested,
  timeOf,
  wholeLife,
} from '../support/payment-events.ts';
import { type ReadModelStore, readModelDrivers } from '../support/read-model-drivers.ts';
import { until } from '../support/until.ts';

const readModelAt = (paymentId: string, revision: number, merchantId = 'm_1'): PaymentReadModel => {
  const readModel = foldReadModel(placed(wholeLife(paymentId, merchantId)).slice(0, revision + 1));
  if (readModel === undefined) throw new Error('no such revision');
  return readModel;
};
const change = (readModel: PaymentReadModel): ReadModelChange => ({ kind: 'readModel', readModel });
const parking = (paymentId: string, revision: number, n = 0): ReadModelChange => ({
  kind: 'park',
  paymentId,
  revision,
  reason: `cannot read ${revision}`,
  time: timeOf(n),
});

for (const driver of readModelDrivers) {
  const suite = driver.skip === undefined ? describe : describe.skip;
  suite(`read models: ${driver.name}${driver.skip ? ` (skipped: ${driver.skip})` : ''}`, () => {
    let store: ReadModelStore;
    let readModels: ReadModels;
    beforeEach(async () => {
      store = await driver.make();
      readModels = await store.open();
    });
    afterEach(async () => {
      await readModels.close();
      await store.remove();
    });
    const reopen = async (): Promise<void> => {
      await readModels.close();
      readModels = await store.open();
    };
    const revisionOf = async (id: string) => (await readModels.getAny(id))?.revision;

    test('new read models are empty and start from the beginning of the log', async () => {
      expect(await readModels.checkpoint()).toBeNull();
      expect(await readModels.getAny('pay_1')).toBeUndefined();
      expect(await readModels.load('pay_1')).toBeUndefined();
      expect(await readModels.unresolved(10)).toEqual([]);
      expect(await readModels.parked(10)).toEqual([]);
    });

    test('gaps §9: the body comes back to the byte, with revision and owner', async () => {
      const details = { merchantReference: 'é \u{1F4B3} "quoted" \u2028 \\ \ud800' };
      const readModel = foldReadModel(placed([created({ details, merchantId: 'm_é' })]));
      if (readModel === undefined) throw new Error('no read model');
      await readModels.apply([change(readModel)], null, 'p1');
      expect(await readModels.getAny('pay_1')).toEqual({
        paymentId: 'pay_1',
        merchantId: 'm_é',
        revision: 0,
        body: bodyOf(readModel),
        parked: false,
      });
    });

    test("each document names its own merchant, and an id's case matters", async () => {
      await readModels.apply(
        [change(readModelAt('pay_a', 1, 'm_1')), change(readModelAt('pay_A', 2, 'm_2'))],
        null,
        'p1',
      );
      expect((await readModels.getAny('pay_a'))?.merchantId).toBe('m_1');
      expect((await readModels.getAny('pay_A'))?.merchantId).toBe('m_2');
      expect(await readModels.getAny("pay_a' OR 1=1 --")).toBeUndefined();
    });

    test("a merchant never sees another merchant's document", async () => {
      await readModels.apply([change(readModelAt('pay_1', 1, 'm_1'))], null, 'p1');
      expect(await readModels.get('pay_1', 'm_1')).toEqual(await readModels.getAny('pay_1'));
      for (const merchantId of ['m_2', 'm_', 'M_1', '', 'm_1 ', '*'])
        expect(await readModels.get('pay_1', merchantId)).toBeUndefined();
      await reopen();
      expect(await readModels.get('pay_1', 'm_2')).toBeUndefined();
      expect(await readModels.get('pay_1', 'm_1')).toMatchObject({ revision: 1 });
    });

    describe('search', () => {
      /** Five payments, named by what they are found by. */
      const fill = async (): Promise<void> => {
        const payment = (
          paymentId: string,
          n: number,
          { merchantId = 'm_1', amount = 2500, last4 = '4242', reference = 'order-1' } = {},
          revision = 0,
        ): ReadModelChange => {
          const [first, ...rest] = wholeLife(paymentId, merchantId);
          if (first?.type !== 'PaymentCreated') throw new Error('no first event');
          const card = { ...first.data.card, last4 };
          const data = { ...first.data, amount, card, details: { merchantReference: reference } };
          const events = [created(data), ...rest].slice(0, revision + 1);
          const readModel = foldReadModel(
            events.map((event, at) => ({ revision: at, time: timeOf(n + at), event })),
          );
          if (readModel === undefined) throw new Error('no read model');
          return change(readModel);
        };
        const changes = [
          payment('pay_1', 10, { amount: 100 }),
          payment('pay_2', 20, { amount: 200, merchantId: 'm_2' }, 1),
          payment('pay_3', 30, { amount: 300, last4: '1111' }, 3),
          payment('pay_5', 40, { amount: 400, reference: 'pay_1' }),
          payment('pay_4', 40, { amount: 500, reference: '1111' }),
        ];
        await readModels.apply(changes, null, 'p1');
      };
      const found = async (search: PaymentSearch, limit = 10): Promise<string[]> =>
        (await readModels.search(search, limit)).map(({ paymentId }) => paymentId);

      test('finds everything, newest first, and by id where times are equal', async () => {
        await fill();
        expect(await found({})).toEqual(['pay_5', 'pay_4', 'pay_3', 'pay_2', 'pay_1']);
        expect(await found({}, 2)).toEqual(['pay_5', 'pay_4']);
        expect(await found({ merchantId: 'm_1' })).toEqual(['pay_5', 'pay_4', 'pay_3', 'pay_1']);
        expect(await found({ merchantId: 'm_3' })).toEqual([]);
      });

      test('gives the documents as they are read one by one', async () => {
        await fill();
        await readModels.apply([parking('pay_2', 2)], 'p1', 'p2');
        for (const document of await readModels.search({}, 10))
          expect(document).toEqual(await readModels.getAny(document.paymentId));
        expect(await readModels.search({ text: 'pay_2' }, 10)).toMatchObject([{ parked: true }]);
      });

      test.each<[string, PaymentSearch, string[]]>([
        ['an id, or a reference that looks like one', { text: 'pay_1' }, ['pay_5', 'pay_1']],
        ['last four digits, or such a reference', { text: '1111' }, ['pay_4', 'pay_3']],
        ['a reference', { text: 'order-1' }, ['pay_3', 'pay_2', 'pay_1']],
        ['a reference of one merchant', { text: 'order-1', merchantId: 'm_2' }, ['pay_2']],
        ['a part of a text', { text: 'order-' }, []],
        ['a text of another case', { text: 'ORDER-1' }, []],
        ['a text with signs of a query', { text: "' OR 1=1 --" }, []],
        ['a status', { status: 'PENDING' }, ['pay_5', 'pay_4', 'pay_1']],
        ['a text and a status', { text: '4242', status: 'AUTHORIZED' }, ['pay_2']],
        ['a time, from inclusive', { from: timeOf(30) }, ['pay_5', 'pay_4', 'pay_3']],
        ['a time, to exclusive', { to: timeOf(30) }, ['pay_2', 'pay_1']],
        ['both times', { from: timeOf(20), to: timeOf(40) }, ['pay_3', 'pay_2']],
        ['amounts, inclusive', { minAmount: 200, maxAmount: 400 }, ['pay_5', 'pay_3', 'pay_2']],
        [
          'the amount authorized, not the one captured',
          { minAmount: 300, maxAmount: 300 },
          ['pay_3'],
        ],
      ])('finds by %s', async (_, search, expected) => {
        await fill();
        expect(await found(search)).toEqual(expected);
      });

      test.each<PaymentSearch>([{}, { merchantId: 'm_1' }, { text: '4242' }])(
        'page after page gives what one page gives: %j',
        async (search) => {
          await fill();
          const pages: string[] = [];
          let after: PaymentSearch['after'];
          for (let page = 0; page < 9; page += 1) {
            const [document] = await readModels.search(
              { ...search, ...(after === undefined ? {} : { after }) },
              1,
            );
            if (document === undefined) break;
            const { paymentId, body } = document;
            pages.push(paymentId);
            after = { paymentId, createdAt: JSON.parse(body).createdAt };
          }
          expect(pages).toEqual(await found(search));
        },
      );

      test('shows a payment as it was last written', async () => {
        await fill();
        await readModels.apply([change(readModelAt('pay_1', 1))], 'p1', 'p2');
        expect(await found({ status: 'PENDING' })).toEqual(['pay_5', 'pay_4']);
        expect(await found({ text: 'pay_1', status: 'AUTHORIZED' })).toEqual(['pay_1']);
      });
    });

    test('the lease is taken, renewed and let go', async () => {
      expect(await readModels.lease('a', 10_000)).toBe(true);
      expect(await readModels.lease('a', 10_000)).toBe(true);
      await readModels.release('b');
      await readModels.release('a');
      expect(await readModels.lease('b', 10_000)).toBe(true);
    });

    const several = driver.alone === undefined ? test : test.skip;
    const why = driver.alone === undefined ? '' : ` (skipped: ${driver.alone})`;
    several(
      `of two who want the lease one has it, until it lets go or its time ends${why}`,
      async () => {
        const other = await store.open();
        try {
          const requested = [readModels.lease('a', 10_000), other.lease('b', 10_000)];
          const [a, b] = await Promise.all(requested);
          expect([a, b].filter(Boolean)).toHaveLength(1);
          const [first, second] = a ? ['a', 'b'] : ['b', 'a'];
          expect(await other.lease(second as string, 10_000)).toBe(false);
          await other.release(second as string);
          expect(await readModels.lease(second as string, 10_000)).toBe(false);
          await readModels.release(first as string);
          expect(await other.lease(second as string, 300)).toBe(true);
          expect(await readModels.lease(first as string, 300)).toBe(false);
          await until('the lease has run out', () => readModels.lease(first as string, 10_000));
          expect(await other.lease(second as string, 10_000)).toBe(false);
        } finally {
          await other.close();
        }
      },
    );

    several(`a wait ends for a document that another process wrote${why}`, async () => {
      const other = await store.open();
      try {
        const waits = Array.from({ length: 50 }, (_, n) =>
          readModels.waitForRevision(`pay_${n}`, 1, 10_000),
        );
        const changes = Array.from({ length: 50 }, (_, n) => change(readModelAt(`pay_${n}`, 2)));
        await other.apply(changes, null, 'p1');
        expect((await Promise.all(waits)).every(Boolean)).toBe(true);
        await expect(readModels.apply([], null, 'p2')).rejects.toThrow(CheckpointMoved);
      } finally {
        await other.close();
      }
    });

    test('P2: a lower or equal revision is skipped, a higher one is written', async () => {
      await readModels.apply([change(readModelAt('pay_1', 3))], null, 'p1');
      const lower = { ...readModelAt('pay_1', 2), merchantId: 'm_wrong' };
      const equal = { ...readModelAt('pay_1', 3), merchantId: 'm_wrong' };
      await readModels.apply([change(lower), change(equal)], 'p1', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 3, merchantId: 'm_1' });
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 3));
      await readModels.apply([change(readModelAt('pay_1', 4))], 'p2', 'p3');
      expect(await revisionOf('pay_1')).toBe(4);
    });

    test('the same batch again changes nothing', async () => {
      const batch = [
        change(readModelAt('pay_1', 1)),
        parking('pay_2', 4),
        change(readModelAt('pay_3', 5)),
      ];
      await readModels.apply(batch, null, 'p1');
      const before = [
        await readModels.getAny('pay_1'),
        await readModels.getAny('pay_3'),
        await readModels.parked(9),
      ];
      await readModels.apply(batch, 'p1', 'p1');
      expect([
        await readModels.getAny('pay_1'),
        await readModels.getAny('pay_3'),
        await readModels.parked(9),
      ]).toEqual(before);
    });

    test('the checkpoint is compared: a writer from elsewhere is refused and writes nothing', async () => {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      for (const from of [null, 'p0', 'p2']) {
        await expect(
          readModels.apply([change(readModelAt('pay_1', 1))], from, 'p9'),
        ).rejects.toThrow(CheckpointMoved);
        await expect(
          readModels.apply([change(readModelAt('pay_2', 1))], from, from),
        ).rejects.toThrow(CheckpointMoved);
      }
      expect(await readModels.checkpoint()).toBe('p1');
      expect(await readModels.getAny('pay_2')).toBeUndefined();
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 0));
    });

    test('the hash given with the checkpoint stays beside it, and is of that place alone', async () => {
      expect(await readModels.checkpointHash('p1')).toBeNull();
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1', 'hash of p1');
      expect(await readModels.checkpointHash('p1')).toBe('hash of p1');
      await readModels.apply([parking('pay_2', 0)], 'p1', 'p1');
      await reopen();
      expect(await readModels.checkpointHash('p1')).toBe('hash of p1');
      await expect(readModels.apply([], null, 'p2', 'hash of p2')).rejects.toThrow(CheckpointMoved);
      expect(await readModels.checkpointHash('p1')).toBe('hash of p1');
      await readModels.apply([], 'p1', 'p2', 'hash of p2');
      expect([
        await readModels.checkpointHash('p1'),
        await readModels.checkpointHash('p2'),
      ]).toEqual([null, 'hash of p2']);
      await readModels.apply([], 'p2', 'p3');
      expect(await readModels.checkpointHash('p3')).toBeNull();
    });

    test('a batch that fails leaves documents, checkpoint and the next load as they were', async () => {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      const broken = { ...readModelAt('pay_2', 0), merchantId: null as unknown as string };
      const batch = [change(readModelAt('pay_1', 1)), parking('pay_3', 0), change(broken)];
      await expect(readModels.apply(batch, 'p1', 'p2')).rejects.toThrow();
      expect(await readModels.checkpoint()).toBe('p1');
      expect(await revisionOf('pay_1')).toBe(0);
      expect(await readModels.parked(9)).toEqual([]);
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 0));
      expect(await readModels.waitForRevision('pay_1', 1, 1)).toBe(false);
      await readModels.apply([change(readModelAt('pay_1', 1))], 'p1', 'p2');
      expect(await revisionOf('pay_1')).toBe(1);
    });

    test('documents, checkpoint and parked payments are there after the next start', async () => {
      await readModels.apply([change(readModelAt('pay_1', 4)), parking('pay_2', 3)], null, 'p7');
      const before = await readModels.getAny('pay_1');
      await reopen();
      expect(await readModels.checkpoint()).toBe('p7');
      expect(await readModels.getAny('pay_1')).toEqual(before);
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 4));
      expect(await readModels.parked(10)).toHaveLength(1);
    });

    test('P1: a loaded read model gives the same body and the same next read model as the one written', async () => {
      for (let revision = 0; revision < wholeLife('pay_1').length; revision += 1) {
        const paymentId = `pay_${revision}`;
        const from = await readModels.checkpoint();
        await readModels.apply([change(readModelAt(paymentId, revision))], from, `p${revision}`);
      }
      await reopen();
      for (let revision = 0; revision < wholeLife('pay_1').length; revision += 1) {
        const loaded = await readModels.load(`pay_${revision}`);
        expect(loaded).toEqual(readModelAt(`pay_${revision}`, revision));
        expect(loaded && bodyOf(loaded)).toBe(bodyOf(readModelAt(`pay_${revision}`, revision)));
      }
    });

    test('gaps §7: unresolved payments are those with an open intent, oldest first', async () => {
      const open = (paymentId: string, n: number): PaymentReadModel => {
        const event = created({ paymentId });
        const readModel = foldReadModel([{ revision: 0, time: timeOf(n), event }]);
        if (readModel === undefined) throw new Error('no read model');
        return readModel;
      };
      const batch = [open('pay_b', 7), open('pay_a', 9), open('pay_c', 8), readModelAt('pay_d', 5)];
      await readModels.apply(batch.map(change), null, 'p1');
      expect(await readModels.unresolved(10)).toEqual([
        { paymentId: 'pay_b', merchantId: 'm_1', since: timeOf(7) },
        { paymentId: 'pay_c', merchantId: 'm_1', since: timeOf(8) },
        { paymentId: 'pay_a', merchantId: 'm_1', since: timeOf(9) },
      ]);
      expect(await readModels.unresolved(2)).toHaveLength(2);
      await readModels.apply([change(readModelAt('pay_b', 1))], 'p1', 'p2');
      expect((await readModels.unresolved(10)).map((u) => u.paymentId)).toEqual(['pay_c', 'pay_a']);
    });

    test('with two intents open the older one counts', async () => {
      const events = placed([
        ...wholeLife('pay_1').slice(0, 4),
        refundRequested({ operationId: 'a', amount: 100 }),
        refundRequested({ operationId: 'b', amount: 100 }),
      ]);
      const readModel = foldReadModel(events);
      if (readModel === undefined) throw new Error('no read model');
      await readModels.apply([change(readModel)], null, 'p1');
      expect(await readModels.unresolved(1)).toMatchObject([{ since: timeOf(4) }]);
      expect((await readModels.load('pay_1'))?.open).toHaveLength(2);
    });

    test('P5: a parked payment keeps its document, marked, and is listed oldest first', async () => {
      await readModels.apply([change(readModelAt('pay_1', 1)), parking('pay_1', 2, 5)], null, 'p1');
      await readModels.apply([parking('pay_0', 0, 4)], 'p1', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 1, parked: true });
      expect(await readModels.getAny('pay_0')).toBeUndefined();
      expect(await readModels.parked(10)).toEqual([
        { paymentId: 'pay_0', revision: 0, reason: 'cannot read 0', since: timeOf(4) },
        { paymentId: 'pay_1', revision: 2, reason: 'cannot read 2', since: timeOf(5) },
      ]);
      expect(await readModels.parked(1)).toHaveLength(1);
    });

    test('parked again elsewhere: the place moves, the time stays', async () => {
      await readModels.apply([parking('pay_1', 2, 5)], null, 'p1');
      await readModels.apply([parking('pay_1', 4, 9)], 'p1', 'p1');
      expect(await readModels.parked(10)).toEqual([
        { paymentId: 'pay_1', revision: 4, reason: 'cannot read 4', since: timeOf(5) },
      ]);
    });

    test('a read model at the poisoned revision or beyond takes the payment out again', async () => {
      await readModels.apply([change(readModelAt('pay_1', 1)), parking('pay_1', 3)], null, 'p1');
      await readModels.apply([change(readModelAt('pay_1', 2))], 'p1', 'p1');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 2, parked: true });
      await readModels.apply([change(readModelAt('pay_1', 3))], 'p1', 'p1');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 3, parked: false });
      expect(await readModels.parked(10)).toEqual([]);
    });

    test('P2: parking below the document is skipped', async () => {
      await readModels.apply([change(readModelAt('pay_1', 3))], null, 'p1');
      await readModels.apply([parking('pay_1', 3), parking('pay_1', 1)], 'p1', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ parked: false });
      expect(await readModels.parked(10)).toEqual([]);
    });

    test('gaps §9: a wait ends as soon as the document is there, for all who wait', async () => {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      expect(await readModels.waitForRevision('pay_1', 0, 60_000)).toBe(true);
      const waits = [
        readModels.waitForRevision('pay_1', 1, 60_000),
        readModels.waitForRevision('pay_1', 2, 60_000),
        readModels.waitForRevision('pay_1', 2, 60_000),
        readModels.waitForRevision('pay_2', 0, 60_000),
      ];
      await readModels.apply(
        [change(readModelAt('pay_1', 2)), change(readModelAt('pay_2', 0))],
        'p1',
        'p2',
      );
      expect(await Promise.all(waits)).toEqual([true, true, true, true]);
    });

    test('a wait in vain gives false after its time, and for a revision still to come', async () => {
      const waits = [
        readModels.waitForRevision('pay_1', 3, 30),
        readModels.waitForRevision('pay_2', 0, 30),
        readModels.waitForRevision('pay_1', 9, 0),
      ];
      await readModels.apply([change(readModelAt('pay_1', 2))], null, 'p1');
      expect(await Promise.all(waits)).toEqual([false, false, false]);
    });

    test('closed read models let waiters go, and say that they are unavailable', async () => {
      const wait = readModels.waitForRevision('pay_1', 0, 60_000);
      await Promise.resolve();
      await readModels.close();
      expect(await wait).toBe(false);
      expect(await readModels.waitForRevision('pay_1', 0, 60_000)).toBe(false);
      await expect(readModels.getAny('pay_1')).rejects.toThrow(ReadModelsUnavailable);
      await expect(readModels.checkpoint()).rejects.toThrow(ReadModelsUnavailable);
      await expect(readModels.apply([], null, null)).rejects.toThrow(ReadModelsUnavailable);
    });

    describe('a generation filled beside the served one', () => {
      const fill = async (into: Pick<ReadModels, 'apply'>, revision: number, to = 'p1') => {
        const payments = ['pay_1', 'pay_2', 'pay_3'].map((id) => change(readModelAt(id, revision)));
        await into.apply([...payments, parking('pay_9', 0)], null, to);
      };

      test('is empty, changes nothing that is read, and is served at once and whole', async () => {
        await fill(readModels, 1);
        const next = await readModels.openGeneration();
        expect(await next.checkpoint()).toBeNull();
        expect(await next.load('pay_1')).toBeUndefined();
        expect(await next.parked(10)).toEqual([]);
        await next.apply(
          [change(readModelAt('pay_1', 5)), change(readModelAt('pay_4', 0))],
          null,
          'p8',
        );
        await next.apply([parking('pay_4', 1)], 'p8', 'p9');
        expect(await revisionOf('pay_1')).toBe(1);
        expect(await readModels.getAny('pay_4')).toBeUndefined();
        expect(await readModels.checkpoint()).toBe('p1');
        expect(await readModels.parked(10)).toHaveLength(1);
        expect(await readModels.unresolved(10)).toEqual([]);
        await next.serve();
        expect(await revisionOf('pay_1')).toBe(5);
        await next.end();
        expect(await revisionOf('pay_1')).toBe(5);
        expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 5));
        expect(await readModels.getAny('pay_4')).toMatchObject({ revision: 0, parked: true });
        expect(await readModels.getAny('pay_2')).toBeUndefined();
        expect(await readModels.checkpoint()).toBe('p9');
        expect(await readModels.parked(10)).toMatchObject([{ paymentId: 'pay_4' }]);
        await readModels.apply([change(readModelAt('pay_4', 1))], 'p9', 'p10');
        expect(await readModels.getAny('pay_4')).toMatchObject({ revision: 1, parked: false });
        await reopen();
        expect(await readModels.checkpoint()).toBe('p10');
        expect(await revisionOf('pay_1')).toBe(5);
      });

      test('takes what is applied to the served one not along, and that goes on', async () => {
        await fill(readModels, 1);
        const next = await readModels.openGeneration();
        await readModels.apply([change(readModelAt('pay_1', 2))], 'p1', 'p2');
        expect(await revisionOf('pay_1')).toBe(2);
        expect(await next.load('pay_1')).toBeUndefined();
        await next.end();
        expect(await revisionOf('pay_1')).toBe(2);
        expect(await readModels.checkpoint()).toBe('p2');
      });

      test('one at a time: a second is refused until the first has ended', async () => {
        for (const served of [false, true]) {
          const next = await readModels.openGeneration();
          await expect(readModels.openGeneration()).rejects.toThrow(RebuildRunning);
          await next.apply([], null, `p_${served}`);
          if (served) await next.serve();
          await expect(readModels.openGeneration()).rejects.toThrow(RebuildRunning);
          await next.end();
        }
        const next = await readModels.openGeneration();
        expect(await next.checkpoint()).toBeNull();
        await next.end();
        await next.end();
        expect(await readModels.checkpoint()).toBe('p_true');
      });

      test('of a process that was killed: the old one is served, the next begins empty', async () => {
        await fill(readModels, 1);
        const killed = await readModels.openGeneration();
        await fill(killed, 5, 'p9');
        await reopen();
        expect(await revisionOf('pay_1')).toBe(1);
        expect(await readModels.checkpoint()).toBe('p1');
        let next: NextGeneration | undefined;
        await until('it may be opened', async () => {
          next = await readModels.openGeneration().catch(() => undefined);
          return next !== undefined;
        });
        expect(await next?.checkpoint()).toBeNull();
        expect(await next?.load('pay_1')).toBeUndefined();
        await next?.end();
        expect(await revisionOf('pay_1')).toBe(1);
      });

      test('has the checksum of the old one exactly when its documents are the same', async () => {
        const empty = await readModels.checksum();
        expect(empty.documents).toBe(0);
        await fill(readModels, 1);
        const sum = await readModels.checksum();
        expect(sum).toMatchObject({ documents: 3, hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
        const next = await readModels.openGeneration();
        expect(await next.checksum()).toEqual(empty);
        for (const id of ['pay_3', 'pay_1', 'pay_2']) {
          expect(await next.checksum()).not.toEqual(sum);
          await next.apply([change(readModelAt(id, 1))], await next.checkpoint(), id);
        }
        expect(await next.checksum()).toEqual(sum);
        await next.apply([change(readModelAt('pay_1', 2))], 'pay_2', 'p9');
        expect(await next.checksum()).not.toEqual(sum);
        await next.end();
      });
    });

    test('more payments than are kept in memory load as they were written', async () => {
      const ids = Array.from({ length: 5000 }, (_, n) => `pay_${n}`);
      const first = ids.map((paymentId) => change(readModelAt(paymentId, 0)));
      await readModels.apply(first, null, 'p1');
      for (const paymentId of ['pay_0', 'pay_903', 'pay_904', 'pay_4999'])
        expect(await readModels.load(paymentId)).toEqual(readModelAt(paymentId, 0));
      const next = foldReadModel(placed([created({ paymentId: 'pay_0' }), authorized()]));
      if (next === undefined) throw new Error('no read model');
      await readModels.apply([change(next)], 'p1', 'p2');
      expect(await revisionOf('pay_0')).toBe(1);
    }, 20_000);
  });
}
