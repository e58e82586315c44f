/** gaps §8: a merchant set to unique references, within one process and over several. */
import { describe, expect, test } from '@jest/globals';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { NewEvent } from '../../shared/event-store/port.ts';
import { createIdentities } from '../../shared/http/idempotency.ts';
import { type ClaimEvent, referenceStreamOf } from '../../shared/payment/events.ts';
import { minor } from '../../shared/payment/transitions.ts';
import {
  type CommandResponse,
  expectError,
  idOf,
  locatedId,
  NO_RETRIES,
  openInProcess,
  SECRET,
  token,
} from '../support/service-in-process.ts';
import { HASTY } from '../support/time-bounds.ts';
import {
  type CommandProcess,
  PAST_FLIGHT_MS,
  processesOfTests,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const UNIQUE = { ...NO_RETRIES, MERCHANT_REFERENCE: 'unique' };

let references = 0;
const newReference = (): string => `order-${++references}`;

const processes = await processesOfTests(UNIQUE);

const expectTaken = (response: CommandResponse, id: string): void =>
  expectError(response, 422, 'BUSINESS_RULE_VIOLATION', [
    `merchantReference names another payment already, ${id}`,
  ]);

const claimsOf = async (reference: string): Promise<string[]> => {
  const hash = createIdentities([SECRET]).referenceHashOf('m_test', reference);
  const events = await processes.store.readStream(referenceStreamOf(hash));
  return events.map(({ event }) => (event.data as { paymentId?: string }).paymentId ?? '');
};

/** Puts a claim of `timeMs` into the stream, as a process would that dies right afterwards. */
const claimAndDie = async (
  reference: string,
  paymentId: string,
  timeMs = Date.now(),
): Promise<void> => {
  const hash = createIdentities([SECRET]).referenceHashOf('m_test', reference);
  const operation = { operationId: 'op_dead', amount: minor(1), currency: 'USD' };
  const event: ClaimEvent = {
    type: 'MerchantReferenceClaimed',
    data: { ...operation, paymentId, merchantId: 'm_test' },
  };
  const claim: NewEvent = {
    id: crypto.randomUUID(),
    time: new Date(timeMs).toISOString(),
    event,
    context: { actor: 'x', requestId: 'x', correlationId: 'x', causationId: 'x' },
  };
  const stream = referenceStreamOf(hash);
  const last = (await processes.store.readStream(stream)).at(-1);
  await processes.store.append(stream, last ?? 'none', [claim]);
};

describe('gaps §8: a second payment with a reference that is not FAILED', () => {
  test('a different request is 422, whatever differs, with a key or without', async () => {
    const merchantReference = newReference();
    const first = idOf(await processes.a.create({ merchantReference }));
    expectTaken(await processes.a.create({ merchantReference, amount: 1 }), first);
    expectTaken(await processes.b.create({ merchantReference, captureNow: true }), first);
    expectTaken(await processes.b.create({ merchantReference, amount: 1 }, { key: 'u-1' }), first);
    expect(await processes.ledger(first)).toHaveLength(1);
    expect(await claimsOf(merchantReference)).toEqual([first]);
  });

  test('an equal request gets the existing payment, with its body as of now', async () => {
    const merchantReference = newReference();
    const first = await processes.a.create({ merchantReference });
    const id = idOf(first);
    const again = await processes.b.create({ merchantReference });
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(again.headers).not.toHaveProperty('idempotent-replayed');
    await processes.a.change('capture', id, { captureAmount: 1500 });
    for (const at of [processes.a, processes.b]) {
      const now = await at.create({ merchantReference }, { key: `u-${merchantReference}` });
      expect([now.status, now.text]).toEqual([200, await processes.body(id)]);
      expect(now.headers).toMatchObject({ etag: '"3"' });
    }
    expect(await processes.ledger(id)).toHaveLength(2);
  });

  test('a repeat under the key of the first is its stored outcome, not the body of now', async () => {
    const merchantReference = newReference();
    const key = `k-${merchantReference}`;
    const first = await processes.a.create({ merchantReference }, { key });
    await processes.a.change('void', idOf(first));
    const repeat = await processes.b.create({ merchantReference }, { key });
    expect(repeat.text).toBe(first.text);
    expect(repeat.headers).toMatchObject({ 'idempotent-replayed': 'true' });
  });

  test('a create that the business rules refuse claims no reference', async () => {
    const merchantReference = newReference();
    expect((await processes.a.create({ merchantReference, currency: 'EUR' })).status).toBe(422);
    expect(await claimsOf(merchantReference)).toEqual([]);
  });

  test('without a reference nothing is claimed, and every create makes a payment', async () => {
    const [one, two] = [await processes.a.create(), await processes.a.create()];
    expect([one.status, two.status]).toEqual([200, 200]);
    expect(idOf(one)).not.toBe(idOf(two));
  });
});

describe('gaps §8: a claim is passed on', () => {
  test('when its payment is FAILED: another card, the same reference', async () => {
    const merchantReference = newReference();
    const declined = await processes.a.create({ merchantReference, number: '4000000000000002' });
    expect(declined.status).toBe(402);
    const second = await processes.b.create({ merchantReference });
    expect(second.status).toBe(200);
    expect(await claimsOf(merchantReference)).toEqual([idOf(declined), idOf(second)]);
    expectTaken(await processes.a.create({ merchantReference, amount: 7 }), idOf(second));
  });

  test('when its payment was never created, and not before it had time to be', async () => {
    const merchantReference = newReference();
    const { clock, store } = processes.b;
    const claimedAtMs = Date.now();
    await claimAndDie(merchantReference, 'pay_dead', claimedAtMs);
    clock.standsAtMs = claimedAtMs + 1_900;
    store.streamReads = 0;
    const creating = processes.b.create({ merchantReference });
    await until('b has looked again and again', () => store.streamReads > 6);
    expect(await claimsOf(merchantReference)).toEqual(['pay_dead']);
    clock.standsAtMs += 100;
    const second = await creating;
    clock.standsAtMs = undefined;
    expect(second.status).toBe(200);
    expect(await claimsOf(merchantReference)).toEqual(['pay_dead', idOf(second)]);
  });

  test('a claimant that was passed over notices after PaymentCreated, and never calls the provider', async () => {
    const merchantReference = newReference();
    const { a, b } = processes;
    // a has claimed; before its payment is appended, b claims as well and is carried out.
    b.clock.aheadMs = 2_100;
    let passedOver = '';
    a.store.beforeAppend = async (stream) => {
      if (!stream.startsWith('payment-')) return;
      a.store.beforeAppend = undefined;
      passedOver = stream.slice('payment-'.length);
      expect((await b.create({ merchantReference })).status).toBe(200);
    };
    const called = a.faults.calls.length;
    const response = await a.create({ merchantReference });
    const [first, second] = await claimsOf(merchantReference);
    expect(first).toBe(passedOver);
    // Equal to the one that holds it: that one's body.
    expect([response.status, idOf(response)]).toEqual([200, second]);
    expect(a.faults.calls).toHaveLength(called);
    expect(await processes.state(passedOver)).toMatchObject({ status: 'FAILED' });
    expect(await processes.ledger(passedOver)).toEqual([]);
  });

  test.each([
    ['the claims cannot be read again', 'merchant-reference-'],
    ['its outcome cannot be recorded', 'payment-'],
  ])(
    'gaps §7: a create is 503 with its payment where, after PaymentCreated, %s',
    async (_name, of) => {
      const merchantReference = newReference();
      const { a, b } = processes;
      b.clock.aheadMs = 2_100;
      const fail = async (stream: string): Promise<void> => {
        if (stream.startsWith(of)) throw new StoreUnavailable('the event store is away');
      };
      a.store.beforeAppend = async (stream) => {
        if (!stream.startsWith('payment-')) return;
        expect((await b.create({ merchantReference })).status).toBe(200);
        a.store.beforeAppend = of === 'payment-' ? fail : undefined;
        a.store.beforeRead = fail;
      };
      const called = a.faults.calls.length;
      const response = await a.create({ merchantReference });
      const id = locatedId(response);
      expect([response.status, response.json.details?.[0]]).toEqual([503, `paymentId ${id}`]);
      expect(a.faults.calls).toHaveLength(called);
      expect((await processes.state(id)).status).toBe('PENDING');
      Object.assign(a.store, { beforeAppend: undefined, beforeRead: undefined });
      // Recovery fences what was never sent, and the other payment keeps the reference.
      b.clock.aheadMs = PAST_FLIGHT_MS;
      await b.change('capture', id);
      expect((await processes.state(id)).status).toBe('FAILED');
      expect((await claimsOf(merchantReference)).at(-1)).not.toBe(id);
    },
  );

  test('a claim that its own repeat made elsewhere since does not bring it back', async () => {
    const merchantReference = newReference();
    const { a, b } = processes;
    b.clock.aheadMs = 2_100;
    a.store.beforeAppend = async (stream) => {
      if (!stream.startsWith('payment-')) return;
      a.store.beforeAppend = undefined;
      expect((await b.create({ merchantReference })).status).toBe(200);
      // Another process, with the same key and so for the same payment, judged before b's was there.
      await claimAndDie(merchantReference, stream.slice('payment-'.length));
    };
    const called = a.faults.calls.length;
    const response = await a.create({ merchantReference }, { key: newReference() });
    const [first, second] = await claimsOf(merchantReference);
    expect([response.status, idOf(response)]).toEqual([200, second]);
    expect(a.faults.calls).toHaveLength(called);
    expect(await processes.ledger(first)).toEqual([]);
  });

  test('a claimant that comes after looks again, and yields to a payment made meanwhile', async () => {
    const merchantReference = newReference();
    const { a, b } = processes;
    b.clock.aheadMs = 2_100;
    const claimed = Promise.withResolvers<void>();
    const mayCreate = Promise.withResolvers<void>();
    a.store.beforeAppend = async (stream) => {
      if (!stream.startsWith('payment-')) return;
      a.store.beforeAppend = undefined;
      claimed.resolve();
      await mayCreate.promise;
    };
    const first = a.create({ merchantReference, amount: 5 });
    await claimed.promise;
    // b passes a over for its age; before b's own claim is stored, a is carried out.
    b.store.beforeAppend = async () => {
      b.store.beforeAppend = undefined;
      mayCreate.resolve();
      expect((await first).status).toBe(200);
    };
    const response = await b.create({ merchantReference });
    expectTaken(response, idOf(await first));
    const [mine = '', theirs = ''] = await claimsOf(merchantReference);
    expect(mine).toBe(idOf(await first));
    expect(await processes.events(theirs)).toEqual([]);
    // The next create fails too: the last claim has no payment, but the first claim has one.
    expectTaken(await a.create({ merchantReference, amount: 6 }), mine);
  });
});

describe('gaps §7, §8: while the payment of the reference is PENDING', () => {
  test('a running create is waited for, and then the new one is judged by its outcome', async () => {
    const merchantReference = newReference();
    const { a, b } = processes;
    const held = await a.faults.hold(() => a.create({ merchantReference }));
    const others = [
      a.create({ merchantReference }),
      b.create({ merchantReference }),
      b.create({ merchantReference, amount: 9 }),
    ];
    held.release();
    const [equal, elsewhere, different] = (await Promise.all(others)) as [
      CommandResponse,
      CommandResponse,
      CommandResponse,
    ];
    const { text } = await held.response;
    expect([equal.text, elsewhere.text]).toEqual([text, text]);
    expectTaken(different, idOf(await held.response));
    expect(await processes.ledger(idOf(await held.response))).toHaveLength(1);
  });

  test('an unresolved create is looked up first; found fenced, its claim is passed on', async () => {
    const merchantReference = newReference();
    const { a, b } = processes;
    a.faults.respondsToLookUps = false;
    a.faults.next('call lost');
    const lost = locatedId(await a.create({ merchantReference }));
    b.clock.aheadMs = PAST_FLIGHT_MS;
    b.faults.respondsToLookUps = false;
    const still = await b.create({ merchantReference });
    expect([still.status, locatedId(still)]).toEqual([503, lost]);
    expectTaken(await b.create({ merchantReference, amount: 9 }), lost);
    b.faults.respondsToLookUps = true;
    const second = await b.create({ merchantReference, amount: 9 });
    expect(second.status).toBe(200);
    expect((await processes.state(lost)).status).toBe('FAILED');
    expect(await claimsOf(merchantReference)).toEqual([lost, idOf(second)]);
  });
});

describe('faults, races: 64 creates with one reference, from two processes', () => {
  const race = (send: (at: CommandProcess, n: number) => Promise<CommandResponse>) =>
    Promise.all(Array.from({ length: 64 }, (_, n) => send(n % 2 ? processes.a : processes.b, n)));
  const chargesFor = async (since: number) => (await processes.ledger()).slice(since);

  /** A request that had no turn within its budget got 503, and is sent again. */
  const inTime = (responses: CommandResponse[]) => responses.filter(({ status }) => status !== 503);

  test('equal creates: one charge, and all get its body', async () => {
    const merchantReference = newReference();
    const before = (await processes.ledger()).length;
    const responses = await race((at) => at.create({ merchantReference }));
    const last = await processes.a.create({ merchantReference });
    for (const { status, text } of inTime([...responses, last]))
      expect([status, text]).toEqual([200, last.text]);
    expect(last.status).toBe(200);
    expect(await chargesFor(before)).toHaveLength(1);
  });

  test('different creates: one payment is made, the others are rejected', async () => {
    const merchantReference = newReference();
    const before = (await processes.ledger()).length;
    const responses = await race((at, n) => at.create({ merchantReference, amount: n + 1 }));
    const last = await processes.a.create({ merchantReference, amount: 100 });
    const all = inTime([...responses, last]);
    const made = all.filter(({ status }) => status === 200);
    expect(made).toHaveLength(1);
    for (const response of all)
      if (response.status !== 200) expectTaken(response, idOf(made[0] as CommandResponse));
    expect(await chargesFor(before)).toHaveLength(1);
  });
});

describe('settings: MERCHANT_REFERENCE, and merchantReference in MERCHANTS_FILE', () => {
  test('another merchant has references of its own', async () => {
    const fields = { merchantReference: 'r-1' };
    const { a } = processes;
    const own = await a.create(fields);
    const other = await a.create(fields, { token: await token('m_other') });
    expect([own.status, other.status]).toEqual([200, 200]);
    expect(idOf(other)).not.toBe(idOf(own));
    expect(idOf(await a.create(fields))).toBe(idOf(own));
  });

  test('one that waits past its budget for another payment is 503, and no repeat of its own key', async () => {
    await using hasty = await openInProcess({ ...UNIQUE, ...HASTY });
    await hasty.create();
    const held = await hasty.faults.hold(() => hasty.create({ merchantReference: 'r-3' }));
    const second = await hasty.create({ merchantReference: 'r-3', amount: 3 }, { key: 'k' });
    expectError(second, 503, 'SERVICE_UNAVAILABLE', [
      'the turn of this request did not come in time',
    ]);
    held.release();
    expectTaken(
      await hasty.create({ merchantReference: 'r-3', amount: 3 }, { key: 'k' }),
      locatedId(await held.response),
    );
  });
});
