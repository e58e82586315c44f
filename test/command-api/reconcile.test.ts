/** The provider's ledger compared with the event log: each kind of difference has a name (docs/audit.md). */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Difference, Logged } from '../../command-api/back-office/reconcile/differences.ts';
import { LedgerUnavailable, reconcile } from '../../command-api/back-office/reconcile/reconcile.ts';
import {
  judge,
  type LookUpResult,
  stillDiffers,
} from '../../command-api/back-office/reconcile/reconcile-payment.ts';
import type { LedgerEntry } from '../../providers/port.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import type { FinalOutcomeDetails } from '../../shared/payment/commands.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/events.ts';
import type { Operation } from '../../shared/payment/state.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import {
  appendPayment,
  authorized,
  captured,
  captureObserved,
  captureRequested,
  created,
  disputed,
  failed,
  newEvent,
  operationId,
  refunded,
  refundFailed,
  refundObserved,
  refundRequested,
  voided,
  voidRequested,
  wholeLife,
} from '../support/payment-events.ts';
import { paymentLogOver } from '../support/payment-log.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { ledgerEntry as entry } from '../support/provider-operations.ts';

const CREATE = operationId(0);
const CAPTURE = operationId(1);

const OPERATION: Operation = {
  kind: 'refund',
  operationId: CREATE,
  amount: minor(2500),
  identity: { fingerprint: 'f' },
  requestedAt: 0,
};

/** A ledger with one entry on each page. */
const ledgerOf = (entries: LedgerEntry[]) => ({
  ledger: async (after: string | null) => {
    const [next, more] = entries.filter(({ cursor }) => Number(cursor) > Number(after));
    return {
      entries: next === undefined ? [] : [next],
      next: more === undefined ? null : (next?.cursor ?? null),
    };
  },
});

const storeOf = async (events: PaymentEvent[]) => {
  const store = memoryEventStore();
  if (events.length > 0) await appendPayment(store, 'pay_1', events);
  return store;
};

const compare = async (
  events: PaymentEvent[],
  entries: LedgerEntry[],
  providers?: readonly string[],
) => {
  const store = await storeOf(events);
  return reconcile({ store, provider: ledgerOf(entries), providers });
};

const authorization = [created(), authorized()];
const capturing = [...authorization, captureRequested()];
const sale = created({ captureNow: true });
const ofSale = [entry({ kind: 'SALE' })];
const DEARER = { amount: 9500 };

test('a ledger whose next page does not come later is an error, for it would never end', async () => {
  const ledger = async () => ({ entries: [entry()], next: '1' });
  const store = memoryEventStore();
  await expect(reconcile({ store, provider: { ledger } })).rejects.toThrow('does not go on');
});

describe('ADR-0247: what other providers were sent', () => {
  const provider = 'http:a.example';
  const elsewhere = [created({ provider }), authorized()];
  const captures = [...elsewhere, captureRequested({ provider })];
  const capturedThere = [...captures, captured({ operationId: CAPTURE })];

  test.each<[string, PaymentEvent[], number]>([
    ['an authorization', elsewhere, 1],
    ['a decline', [created({ provider }), failed()], 1],
    ['a capture beside it', capturedThere, 2],
    ['what is unresolved', captures, 2],
    ['half a sale', [created({ captureNow: true, provider }), authorized()], 1],
    ['a refund that was seen there', [...capturedThere, refundObserved()], 2],
  ])('%s: counted, and missing at no ledger', async (_name, events, atOtherProviders) => {
    const result = await compare(events, [], ['stripe']);
    expect(result).toMatchObject({ ok: true, differences: [], atOtherProviders });
  });

  test('what this provider was sent, by an earlier name too, and what has no name is compared', async () => {
    expect(await compare(elsewhere, [], ['stripe', provider])).toMatchObject({
      ok: false,
      atOtherProviders: 0,
      byKind: { MISSING_AT_PROVIDER: 1 },
    });
    expect((await compare(authorization, [], ['stripe'])).byKind.MISSING_AT_PROVIDER).toBe(1);
  });

  test('an entry that the ledger has all the same is compared', async () => {
    const { differences } = await compare(elsewhere, [entry({ amount: 1 })], ['stripe']);
    expect(differences).toMatchObject([{ kind: 'AMOUNT_DIFFERS', log: { provider } }]);
  });

  test('of one payment: the provider is not said to be silent', () => {
    const found = { outcome: 'UNKNOWN', reason: 'other_provider' } as const;
    expect(judge({ ...OPERATION, provider }, found)).toEqual({
      finding: 'NOT_KNOWN',
      why: 'it was sent to http:a.example, and another provider is set',
    });
  });
});

describe('M5: what the log and the provider’s word about one operation come to', () => {
  const APPROVAL = { outcome: 'APPROVED', providerReference: 'sim-1' } as const;
  const DECLINE = { outcome: 'DECLINED', failureCode: 'CARD_DECLINED' } as const;
  const NOTHING = { outcome: 'NOT_FOUND' } as const;
  const silent = (reason: string) => ({ outcome: 'UNKNOWN', reason }) as const;

  test.each<[FinalOutcomeDetails['outcome'] | undefined, LookUpResult, string, string | undefined]>(
    [
      ['APPROVED', APPROVAL, 'AGREES', undefined],
      ['DECLINED', DECLINE, 'AGREES', undefined],
      ['NOT_SENT', NOTHING, 'AGREES', undefined],
      ['DECLINED', NOTHING, 'NO_ENTRY', undefined],
      ['APPROVED', NOTHING, 'DIFFERS', 'MISSING_AT_PROVIDER'],
      ['APPROVED', DECLINE, 'DIFFERS', 'OUTCOME_DIFFERS'],
      ['FENCED', APPROVAL, 'DIFFERS', 'NEVER_SENT_IN_LOG'],
      ['APPROVED', silent('mismatch'), 'DIFFERS', 'OPERATION_DIFFERS'],
      [undefined, APPROVAL, 'DIFFERS', 'UNRESOLVED_IN_LOG'],
      [undefined, NOTHING, 'OPEN', undefined],
      [undefined, silent('at_work'), 'NOT_KNOWN', undefined],
      ['APPROVED', silent('unreachable'), 'NOT_KNOWN', undefined],
    ],
  )('log %s, provider %j: %s %s', (outcome, found, finding, difference) => {
    const ended = outcome && { outcome, revision: 1 };
    const judged = judge({ ...OPERATION, ...(ended && { ended }) }, found);
    expect([judged.finding, judged.difference]).toEqual([finding, difference]);
  });

  test('a refund that came back later agrees with a provider that calls it failed', () => {
    const ended = { outcome: 'APPROVED', revision: 1 } as const;
    expect(judge({ ...OPERATION, ended, failedLater: true }, DECLINE).finding).toBe('AGREES');
  });
});

describe('gaps §28: a difference that was found is asked about again', () => {
  const APPROVAL: LookUpResult = { outcome: 'APPROVED', providerReference: 'sim-1' };
  const NOTHING: LookUpResult = { outcome: 'NOT_FOUND' };
  const silent = (reason: string): LookUpResult => ({ outcome: 'UNKNOWN', reason });
  const observed = [...authorization, captureObserved({ providerReference: CREATE })];
  const sold = captured({ operationId: CAPTURE });
  const inDispute = [...capturing, sold, disputed({ disputeId: CREATE })];
  const fenced = [created(), failed({ outcome: 'FENCED' })];

  test.each<[Difference['kind'], boolean, string, PaymentEvent[], LookUpResult]>([
    ['MISSING_AT_PROVIDER', true, 'it has none', authorization, NOTHING],
    ['MISSING_AT_PROVIDER', false, 'it has it now', authorization, APPROVAL],
    ['MISSING_AT_PROVIDER', true, 'it did not say', authorization, silent('unreachable')],
    ['MISSING_AT_PROVIDER', false, 'another is set', authorization, silent('other_provider')],
    ['OUTCOME_DIFFERS', true, 'the log has a decline', [created(), failed()], APPROVAL],
    ['NEVER_SENT_IN_LOG', false, 'it has none', fenced, NOTHING],
    ['AMOUNT_DIFFERS', true, 'it has another amount', authorization, silent('mismatch')],
    ['AMOUNT_DIFFERS', true, 'the log is wrong', [created(), authorized(DEARER)], APPROVAL],
    ['OPERATION_DIFFERS', true, 'its word names no kind', authorization, APPROVAL],
    ['MISSING_IN_LOG', true, 'the log has none', [], APPROVAL],
    ['MISSING_IN_LOG', false, 'the log has seen it', observed, APPROVAL],
    ['MISSING_IN_LOG', false, 'the log has the dispute', inDispute, APPROVAL],
  ])('%s stands: %s, for %s', async (kind, stands, _why, events, found) => {
    const store = await storeOf(events);
    const deps = { paymentLog: paymentLogOver(store), provider: { lookUp: async () => found } };
    const difference = { kind, operationId: CREATE, paymentId: 'pay_1' };
    expect(await stillDiffers(deps, difference)).toBe(stands);
  });

  test('it stands while its payment cannot be read', async () => {
    const store = await storeOf(authorization);
    store.damage(streamOf('pay_1'), 1, 'is damaged');
    const deps = { paymentLog: paymentLogOver(store), provider: { lookUp: async () => APPROVAL } };
    const difference = {
      kind: 'UNREADABLE_IN_LOG',
      operationId: CREATE,
      paymentId: 'pay_1',
    } as const;
    expect(await stillDiffers(deps, difference)).toBe(true);
  });
});

describe('M5: ledger and log differ', () => {
  test.each<[string, PaymentEvent[], LedgerEntry[]]>([
    ['MISSING_AT_PROVIDER', authorization, []],
    ['MISSING_IN_LOG', [], [entry()]],
    ['UNRESOLVED_IN_LOG', [created()], [entry()]],
    ['NEVER_SENT_IN_LOG', [created(), failed({ outcome: 'FENCED' })], [entry()]],
    ['OUTCOME_DIFFERS', authorization, [entry({ outcome: 'DECLINED' })]],
    ['AMOUNT_DIFFERS', authorization, [entry({ amount: 2501 })]],
    ['AMOUNT_DIFFERS', authorization, [entry({ currency: 'EUR' })]],
    ['AMOUNT_DIFFERS', [sale, authorized()], ofSale],
    ['OPERATION_DIFFERS', authorization, ofSale],
    ['OPERATION_DIFFERS', authorization, [entry({ paymentId: 'pay_2' })]],
  ])('%s', async (kind, events, entries) => {
    const { ok, differences } = await compare(events, entries);
    expect(ok).toBe(false);
    expect(differences).toEqual([expect.objectContaining({ kind, operationId: CREATE })]);
  });
});

const CAPTURED = { operationId: CAPTURE, amount: 1500 };
const part = captured({ ...CAPTURED, releasedAmount: 1000 });
const inPart = [...authorization, captureRequested(CAPTURED), part];
const refunding = [...inPart, refundRequested({ amount: 500 })];
const voiding = [...authorization, voidRequested(), voided()];
const asEntry = (n: number, kind: LedgerEntry['kind'], amount: number): LedgerEntry =>
  entry({ cursor: String(n), operationId: operationId(n - 1), kind, amount });
const ofCapture = [entry(), asEntry(2, 'CAPTURE', 1500)];
const ofRefund = [...ofCapture, asEntry(3, 'REFUND', 500)];

describe('M5: ledger and log agree', () => {
  test.each<[string, PaymentEvent[], LedgerEntry[]]>([
    ['on nothing at all', [], []],
    ['on an authorization', authorization, [entry()]],
    ['on a decline', [created(), failed()], [entry({ outcome: 'DECLINED' })]],
    ['on a sale, which is one operation and two events', [sale, authorized(), captured()], ofSale],
    [
      'on a capture beside its authorization',
      [...capturing, captured({ operationId: CAPTURE })],
      [entry(), entry({ cursor: '2', operationId: CAPTURE, kind: 'CAPTURE' })],
    ],
    ['that nothing was sent', [created(), failed({ outcome: 'NOT_SENT' })], []],
    ['that an unresolved intent was not carried out', capturing, [entry()]],
    ['on a partial capture', inPart, ofCapture],
    ['on a void', voiding, [entry(), asEntry(2, 'VOID', 2500)]],
    ['on a refund', [...refunding, refunded({ amount: 500 })], ofRefund],
  ])('%s', async (_name, events, entries) => {
    expect(await compare(events, entries)).toMatchObject({ ok: true, differences: [], more: 0 });
  });
});

describe('the sum of every event is compared with the ledger', () => {
  test.each<[string, PaymentEvent[], LedgerEntry[], number]>([
    ['an authorization', [created(), authorized(DEARER)], [entry()], 9500],
    ['the intent of an authorization', [created(DEARER), authorized()], [entry()], 2500],
    ['intent and outcome alike', [created(DEARER), authorized(DEARER)], [entry()], 9500],
    ['the first event of a sale', [sale, authorized(DEARER), captured()], ofSale, 9500],
    ['the second event of a sale', [sale, authorized(), captured(DEARER)], ofSale, 9500],
    [
      'a capture of 15.00 that the log has as 95.00',
      inPart.with(3, captured({ ...CAPTURED, ...DEARER })),
      ofCapture,
      9500,
    ],
    [
      'what a partial capture released',
      inPart.with(3, captured({ ...CAPTURED, releasedAmount: 400 })),
      ofCapture,
      1500,
    ],
    ['a void', voiding.with(3, voided({ amount: 1 })), [entry(), asEntry(2, 'VOID', 2500)], 1],
    ['a refund', [...refunding, refunded({ amount: 1500 })], ofRefund, 1500],
    ['a decline', [created(), failed(DEARER)], [entry({ outcome: 'DECLINED' })], 9500],
  ])('%s', async (_what, events, entries, amount) => {
    const { ok, differences } = await compare(events, entries);
    expect({ ok, differences }).toEqual({
      ok: false,
      differences: [
        expect.objectContaining({
          kind: 'AMOUNT_DIFFERS',
          operationId: entries.at(-1)?.operationId,
          log: expect.objectContaining({ amount }),
        }),
      ],
    });
  });

  test('an amount that was never sent has to be that of its intent', async () => {
    const events = [created(), failed({ outcome: 'NOT_SENT', amount: 9500 })];
    const { differences } = await compare(events, []);
    expect(differences).toMatchObject([{ kind: 'AMOUNT_DIFFERS', log: DEARER }]);
  });
});

describe('an outcome that no intent asked for never agrees', () => {
  const once = [...refunding, refunded({ amount: 500 })];
  const OWN = operationId(7);

  test('a refund without intent is missing at the provider', async () => {
    const events = [...inPart, refunded({ operationId: OWN, amount: 500 })];
    const { ok, differences } = await compare(events, ofCapture);
    expect({ ok, differences }).toMatchObject({
      ok: false,
      differences: [
        {
          kind: 'MISSING_AT_PROVIDER',
          operationId: OWN,
          log: { amount: 500, reason: expect.stringMatching(/^no intent/) },
        },
      ],
    });
  });

  test.each([
    ['before its entry is read', ledgerOf(ofRefund), 'AMOUNT_DIFFERS'],
    [
      'after its entry was compared',
      { ledger: async (after: string | null) => ({ entries: after ? [] : ofRefund, next: null }) },
      'MISSING_AT_PROVIDER',
    ],
  ])('a refund that is stored twice, %s, is once too many', async (_when, provider, kind) => {
    const store = await storeOf([...once, refunded({ amount: 500 })]);
    const { ok, differences } = await reconcile({ store, provider });
    expect({ ok, differences }).toMatchObject({
      ok: false,
      differences: [{ kind, operationId: operationId(2) }],
    });
  });

  test('a refund without intent that the ledger has is no agreement', async () => {
    const events = [...inPart, refunded({ amount: 500 })];
    const { differences } = await compare(events, ofRefund);
    expect(differences).toMatchObject([{ kind: 'AMOUNT_DIFFERS', operationId: operationId(2) }]);
  });
});

test('a log that cannot be read whole is not said to agree; the event is named, and its operation is not called missing', async () => {
  const store = await storeOf(wholeLife('pay_1'));
  store.damage(streamOf('pay_1'), 5, 'is damaged');
  const entries = [entry(), asEntry(2, 'CAPTURE', 2000), asEntry(3, 'REFUND', 800)];
  const result = await reconcile({ store, provider: ledgerOf(entries) });
  expect(result).toMatchObject({
    ok: false,
    unreadable: 1,
    unreadableEvents: [{ paymentId: 'pay_1', revision: 5 }],
    differences: [{ kind: 'UNREADABLE_IN_LOG', operationId: operationId(2), paymentId: 'pay_1' }],
  });
});

describe('a reconciliation in bounded memory', () => {
  const manyEntries = (count: number): LedgerEntry[] =>
    Array.from({ length: count }, (_, n) =>
      entry({ cursor: String(n + 1), operationId: operationId(n), paymentId: `pay_${n}` }),
    );
  const ofPages = (entries: LedgerEntry[]) => ({
    ledger: async (after: string | null) => {
      const from = Number(after);
      const page = entries.slice(from, from + 100);
      const next = from + 100 < entries.length ? String(from + 100) : null;
      return { entries: page, next };
    },
  });

  test('stops where too much waits for its counterpart, and says how much it did not compare', async () => {
    const provider = ofPages(manyEntries(300));
    const store = memoryEventStore();
    const result = await reconcile({ store, provider, waitingMax: 150 });
    expect(result).toMatchObject({ ok: false, notCompared: 200, differences: [] });
  });

  test('of a log and a ledger that agree keeps little, however long they are', async () => {
    const entries = manyEntries(600);
    const store = memoryEventStore();
    for (const { paymentId, operationId: id } of entries) {
      const events = [created({ paymentId, operationId: id }), authorized({ operationId: id })];
      await appendPayment(store, paymentId, events);
    }
    const result = await reconcile({ store, provider: ofPages(entries), waitingMax: 150 });
    expect(result).toMatchObject({ ok: true, operations: 600, entries: 600, notCompared: 0 });
  });

  test('does not keep what was never sent, and still finds it in the ledger', async () => {
    const store = memoryEventStore();
    for (let n = 0; n < 300; n += 1) {
      const id = operationId(n);
      const events = [
        created({ paymentId: `pay_${n}`, operationId: id }),
        failed({ operationId: id, outcome: 'NOT_SENT' }),
      ];
      await appendPayment(store, `pay_${n}`, events);
    }
    const late = entry({ operationId: operationId(7), paymentId: 'pay_7' });
    const result = await reconcile({ store, provider: ofPages([late]), waitingMax: 150 });
    expect(result.differences).toMatchObject([{ kind: 'NEVER_SENT_IN_LOG', paymentId: 'pay_7' }]);
    expect(result).toMatchObject({ operations: 300, notCompared: 0 });
  });
});

describe('M5: what happens during the comparison is no difference', () => {
  test('an outcome that is recorded while both are read', async () => {
    const store = memoryEventStore();
    const stream = streamOf('pay_1');
    const [first] = await store.append(stream, 'none', [newEvent(created())]);
    const { ledger } = ledgerOf([entry()]);
    let pages = 0;
    const provider = {
      ledger: async (after: string | null) => {
        pages += 1;
        if (pages === 2 && first !== undefined) {
          await store.append(stream, first, [newEvent(authorized())]);
        }
        return ledger(after);
      },
    };
    expect(await reconcile({ store, provider })).toMatchObject({ ok: true });
  });

  test('a payment that begins and ends after the ledger was first read', async () => {
    const store = memoryEventStore();
    const entries: LedgerEntry[] = [];
    const { ledger } = { ledger: (after: string | null) => ledgerOf(entries).ledger(after) };
    let pages = 0;
    const provider = {
      ledger: async (after: string | null) => {
        const page = await ledger(after);
        pages += 1;
        if (pages === 1) {
          await appendPayment(store, 'pay_1', authorization);
          entries.push(entry());
        }
        return page;
      },
    };
    expect(await reconcile({ store, provider })).toMatchObject({ ok: true, entries: 1 });
  });
});

const SINCE = '2026-02-01T00:00:00.000Z';
/** So many seconds after the beginning of the window. */
const at = (seconds: number): string => new Date(Date.parse(SINCE) + seconds * 1_000).toISOString();

type Timed<T> = [seconds: number, T];

/** A provider that lists what it carried out since a time, each entry at a time of its own. */
const timedLedger = (entries: readonly Timed<LedgerEntry>[], limit = 2) => {
  const ordered = entries.toSorted(([a], [b]) => a - b);
  const questions: string[] = [];
  return {
    questions,
    provider: {
      ledger: async (after: string | null, _limit: number, since = '') => {
        const all = ordered.map(([seconds, one], n) => ({ seconds, ...one, cursor: `${n + 1}` }));
        const later = all.filter(
          (one) => at(one.seconds) >= since && Number(one.cursor) > Number(after),
        );
        const page = later.slice(0, limit).map(({ seconds: _, ...one }) => one);
        return {
          entries: page,
          next: later.length > limit ? (page.at(-1)?.cursor ?? null) : null,
          since: since === '' ? undefined : since,
        };
      },
    },
    /** What the provider says of an operation when it is asked by its id. */
    agreesOn: async (own: Logged): Promise<boolean> => {
      questions.push(own.operationId);
      const found = entries.find(([, { operationId: id }]) => id === own.operationId)?.[1];
      return found?.outcome === own.outcome && found?.amount === own.amount;
    },
  };
};

const timedLog = () => {
  const store = memoryEventStore();
  const last = new Map<string, RecordedEvent>();
  const append = async (paymentId: string, seconds: number, ...events: PaymentEvent[]) => {
    const made = events.map((event) => newEvent(event, at(seconds)));
    const stored = await store.append(streamOf(paymentId), last.get(paymentId) ?? 'none', made);
    last.set(paymentId, stored.at(-1) as RecordedEvent);
  };
  return { store, append };
};

const logOf = async (events: readonly Timed<PaymentEvent>[]) => {
  const { store, append } = timedLog();
  for (const [seconds, event] of events) await append('pay_1', seconds, event);
  return store;
};

describe('gaps §28: a window of log and ledger', () => {
  type Sides = { events: Timed<PaymentEvent>[]; entries: Timed<LedgerEntry>[] };
  /** When intent, outcome and entry of an operation were made. */
  const made = (
    [intent, outcome, entered]: readonly (number | undefined)[],
    event = authorized(),
    fields: Partial<LedgerEntry> = {},
  ): Sides => ({
    events: [
      ...(intent === undefined ? [] : [[intent, created()] as Timed<PaymentEvent>]),
      ...(outcome === undefined ? [] : [[outcome, event] as Timed<PaymentEvent>]),
    ],
    entries: entered === undefined ? [] : [[entered, entry(fields)]],
  });
  const capture = captured({ operationId: CAPTURE });
  const OLD: Timed<PaymentEvent>[] = [
    [-9, created()],
    [-8, authorized()],
  ];
  const REFUND = { operationId: operationId(2), kind: 'REFUND', outcome: 'DECLINED' } as const;
  const bounced: Sides = {
    events: [
      ...OLD,
      [-7, captureRequested()],
      [-7, capture],
      [-2, refundRequested()],
      [-1, refunded()],
      [1, refundFailed()],
    ],
    entries: [[0, entry(REFUND)]],
  };
  const capturedLate: Sides = {
    events: [...OLD, [1, captureRequested()], [2, capture]],
    entries: [
      [-9, entry()],
      [-9, entry({ operationId: CAPTURE, kind: 'CAPTURE' })],
    ],
  };
  const halfSale: Sides = {
    events: [
      [-2, sale],
      [-1, authorized()],
      [0, captured()],
    ],
    entries: [[1, entry({ kind: 'SALE' })]],
  };
  const ofSides = async ({ events, entries }: Sides) => {
    const { questions, ...sides } = timedLedger(entries);
    const result = await reconcile({ store: await logOf(events), since: SINCE, ...sides });
    return { result, questions };
  };

  test.each<[string, Sides, string[]]>([
    ['an intent before it, its outcome and entry in it', made([-1, 1, 1]), []],
    ['an intent and entry before it, the outcome in it', made([-1, 1, -1]), []],
    ['all of it in the log, its entry before it', made([0, 1, -1]), [CREATE]],
    ['all before it in the log, its entry in it', made([-2, -1, 0]), []],
    ['an intent before it that was fenced in it', made([-1, 1], failed({ outcome: 'FENCED' })), []],
    ['a sale whose first event is before it', halfSale, []],
    ['a capture that is listed with its authorization, before it', capturedLate, [CAPTURE]],
    ['a refund of before it that bounced in it', bounced, []],
    ['what was seen of other hands', { events: [...OLD, [1, captureObserved()]], entries: [] }, []],
  ])('%s is no difference', async (_name, sides, expected) => {
    const { result, questions } = await ofSides(sides);
    expect(result).toMatchObject({ ok: true, differences: [], since: SINCE });
    expect(questions).toEqual(expected);
  });

  test.each<[string, Sides]>([
    ['MISSING_AT_PROVIDER', made([0, 1])],
    ['MISSING_IN_LOG', made([undefined, undefined, 0])],
    ['AMOUNT_DIFFERS', made([-2, -1, 0], authorized(), DEARER)],
    ['OUTCOME_DIFFERS', made([-1, 1, 0], authorized(), { outcome: 'DECLINED' })],
    ['NEVER_SENT_IN_LOG', made([-1, 1, 0], failed({ outcome: 'NOT_SENT' }))],
    ['AMOUNT_DIFFERS', made([-1, 1, 1], authorized(DEARER))],
    ['MISSING_AT_PROVIDER', { events: [...OLD, [1, capture]], entries: [[-9, entry()]] }],
  ])('%s is found in it and at its edge', async (kind, sides) => {
    expect((await ofSides(sides)).result.differences).toMatchObject([{ kind }]);
  });

  test('what began and ended before it is not read', async () => {
    const { questions, ...sides } = timedLedger([[-3, entry(DEARER)]]);
    const store = await logOf(OLD);
    const result = await reconcile({ store, since: SINCE, ...sides });
    expect(result).toMatchObject({ ok: true, operations: 0, entries: 0 });
    expect(questions).toEqual([]);
    expect((await reconcile({ store, ...sides })).byKind.AMOUNT_DIFFERS).toBe(1);
  });

  test('of a ledger that is read from the start everything is compared', async () => {
    const store = await logOf(OLD);
    const result = await reconcile({ store, provider: ledgerOf([entry()]), since: SINCE });
    expect(result).toMatchObject({ ok: true, operations: 1, entries: 1 });
    expect(result).not.toHaveProperty('since');
  });

  test('a provider that does not say ends the comparison', async () => {
    const { provider } = timedLedger([]);
    const agreesOn = () => Promise.reject(new Error('out of reach'));
    const store = await logOf([
      [0, created()],
      [1, authorized()],
    ]);
    await expect(reconcile({ store, provider, agreesOn, since: SINCE })).rejects.toThrow(
      LedgerUnavailable,
    );
  });

  test('of captures whose authorizations are before it no more wait than there is room for', async () => {
    const { store, append } = timedLog();
    const ids = Array.from({ length: 60 }, (_, n) => `pay_${n}`);
    const [create, change] = [(id: string) => `op_a_${id}`, (id: string) => `op_c_${id}`];
    for (const paymentId of ids) {
      const operation = { operationId: create(paymentId) };
      await append(paymentId, -9, created({ paymentId, ...operation }), authorized(operation));
    }
    for (const paymentId of ids) {
      const operation = { operationId: change(paymentId) };
      await append(paymentId, 1, captureRequested(operation), captured(operation));
    }
    const entries = ids.flatMap((paymentId): Timed<LedgerEntry>[] => [
      [-9, entry({ paymentId, operationId: create(paymentId) })],
      [-9, entry({ paymentId, operationId: change(paymentId), kind: 'CAPTURE' })],
    ]);
    const { questions, ...sides } = timedLedger(entries);
    const result = await reconcile({ store, since: SINCE, ...sides, waitingMax: 20 });
    expect(result).toMatchObject({ ok: true, operations: 60, notCompared: 0 });
    expect(questions).toHaveLength(60);
  });

  test('wherever it begins and whatever the clocks say, what agrees is never a difference', async () => {
    const operation = fc.record({
      intent: fc.integer({ min: -8, max: 8 }),
      takes: fc.nat(6),
      records: fc.nat(6),
      /** Of the clock of its process; `ahead` is the provider's. */
      skew: fc.integer({ min: -4, max: 4 }),
    });
    const agree = async (
      all: { [K in 'intent' | 'takes' | 'records' | 'skew']: number }[],
      ahead: number,
    ) => {
      const { store, append } = timedLog();
      const steps = all.flatMap(
        ({ intent, takes, records, skew }, n): Timed<[string, number, PaymentEvent]>[] => {
          const [paymentId, operationId] = [`pay_${n}`, `op_${n}`];
          const end = intent + takes + records;
          return [
            [intent, [paymentId, intent + skew, created({ paymentId, operationId })]],
            [end, [paymentId, end + skew, authorized({ operationId })]],
          ];
        },
      );
      for (const [, step] of steps.toSorted(([a], [b]) => a - b)) await append(...step);
      const entries = all.map(
        ({ intent, takes }, n): Timed<LedgerEntry> => [
          intent + takes + ahead,
          entry({ paymentId: `pay_${n}`, operationId: `op_${n}` }),
        ],
      );
      const { questions: _, ...sides } = timedLedger(entries);
      const result = await reconcile({ store, since: SINCE, ...sides });
      expect(result).toMatchObject({ ok: true, differences: [] });
    };
    const property = fc.asyncProperty(
      fc.array(operation, { maxLength: 12 }),
      fc.integer({ min: -4, max: 4 }),
      agree,
    );
    await fc.assert(property, { numRuns: propertyRuns(300) });
  });
});
