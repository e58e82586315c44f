/**
 * The next step of one endpoint, model-checked: whatever fails, in whatever order requests end, and
 * wherever the process dies, each event is accepted or given up, and in order per payment.
 */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  ATTEMPTS_OF_ONE_MAX,
  accepted,
  beginDelivery,
  type Delivery,
  failed,
  type Item,
  nextStep,
  passed,
  RETRYING_MAX,
  readOn,
  started,
  type Wanted,
} from '../../webhooks/delivery/delivery.ts';
import {
  type DeliveryRow,
  isFailing,
  newDeliveryRow,
  parseDeliveryRow,
  type Single,
  textOfDeliveryRow,
} from '../../webhooks/delivery/delivery-row.ts';
import { followEndpointEvents } from '../../webhooks/delivery/endpoint-events.ts';
import type { Endpoint } from '../../webhooks/endpoints/endpoints.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { randomOf } from '../support/random.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const random = 0.5;
/** A revision that is never accepted is given up after days: some 6,000 steps while nothing else is left. */
const STEPS_PER_EVENT_MAX = 20_000;

const eventAt = (paymentId: string, revision: number, index: number): Wanted => ({
  place: { position: String(index + 1), hash: null },
  paymentId,
  revision,
  atMs: index,
});

/** `of` has a payment's number for each event of the log. */
const logOf = (of: readonly number[]): Wanted[] => {
  const revisions = new Map<number, number>();
  return of.map((payment, index) => {
    const revision = revisions.get(payment) ?? 0;
    revisions.set(payment, revision + 1);
    return eventAt(`pay_${payment}`, revision, index);
  });
};

type World = {
  log: Wanted[];
  /** Payments that the endpoint never accepts. */
  poisoned: ReadonlySet<string>;
  /** The endpoint accepts nothing in this time. */
  outageMs: { from: number; to: number };
  failureRate: number;
  crashRate: number;
  seed: number;
};

const WELL = { fails: 0, failingSince: null, probeAt: 0, window: 1 };

const revisionKey = ({ paymentId, revision }: { paymentId: string; revision: number }) =>
  `${paymentId}/${revision}`;

/** Delivers a whole log, and fails where an event overtakes another of its payment. */
const deliver = ({ log, poisoned, outageMs, failureRate, crashRate, seed }: World) => {
  const random = randomOf(seed);
  const ended = new Set<string>();
  const givenUp = new Set<string>();
  const requests = { count: 0, most: 0 };
  let nowMs = 0;
  let saved: DeliveryRow = newDeliveryRow(null, 0);
  let delivery: Delivery = beginDelivery(saved);
  let flying: Item[] = [];

  const receive = (item: Item): boolean => {
    const { id: paymentId, revision } = item;
    requests.count += 1;
    for (let before = 0; before < revision; before += 1) {
      if (!ended.has(revisionKey({ paymentId, revision: before })))
        throw new Error(`${paymentId}: revision ${revision} before ${before}`);
    }
    const isOut = nowMs >= outageMs.from && nowMs < outageMs.to;
    const isAccepted = !isOut && !poisoned.has(paymentId) && !random.chance(failureRate);
    if (isAccepted) ended.add(revisionKey({ paymentId, revision }));
    return isAccepted;
  };

  const end = (item: Item): void => {
    if (receive(item)) delivery = accepted(delivery, item, nowMs, 0);
    else {
      const after = failed(delivery, item, nowMs, { random: random.between(0, 100) / 100 });
      // Where nothing but poisoned payments is left it is disabled, and enabled by its merchant.
      delivery = after.isOver
        ? { ...after.delivery, row: { ...after.delivery.row, ...WELL } }
        : after.delivery;
      if (after.nextAt === undefined) {
        givenUp.add(revisionKey({ paymentId: item.id, revision: item.revision }));
        ended.add(revisionKey({ paymentId: item.id, revision: item.revision }));
      }
    }
  };

  const crash = (): void => {
    delivery = beginDelivery(saved);
    flying = [];
  };

  const isDone = () => ended.size === log.length && flying.length === 0;
  for (let steps = 0; !isDone(); steps += 1) {
    if (steps > STEPS_PER_EVENT_MAX * log.length)
      throw new Error(`not at its end: ${ended.size} of ${log.length}`);
    if (random.chance(crashRate)) crash();
    const step = nextStep(delivery, nowMs);
    const at = delivery.readTo.position === null ? 0 : Number(delivery.readTo.position);
    if (Object.keys(delivery.row.retrying).length > RETRYING_MAX) throw new Error('too many retry');
    if (step.send !== undefined) {
      if (isFailing(delivery.row) && flying.length > 0) throw new Error('two at a time');
      delivery = started(delivery, step.send);
      flying.push(step.send);
      requests.most = Math.max(requests.most, flying.length);
    } else if (step.read && at < log.length) {
      const events = log.slice(at, at + random.between(1, 20));
      delivery = readOn(delivery, events, events.at(-1)?.place ?? delivery.readTo);
    } else if (flying.length > 0) {
      const [item] = flying.splice(random.between(0, flying.length - 1), 1) as [Item];
      nowMs += 10;
      end(item);
      if (random.chance(crashRate)) crash();
      else saved = delivery.row;
    } else {
      const dueMs = Number.isFinite(step.untilMs) ? step.untilMs : nowMs + 1_000;
      nowMs = Math.max(nowMs + 1, dueMs);
    }
  }
  return { delivery, givenUp, requests, nowMs };
};

const world = fc.record({
  of: fc.array(fc.nat(7), { minLength: 1, maxLength: 60 }),
  poisoned: fc.subarray([0, 1, 2]),
  outage: fc.record({ from: fc.nat(500), hours: fc.constantFrom(0, 1, 20) }),
  failureRate: fc.constantFrom(0, 0.05, 0.3),
  crashRate: fc.constantFrom(0, 0.02),
  seed: fc.nat(),
});

const ALL_POISONED = {
  of: [0, 0, 0, 0, 0, 0, 0, 0, 1],
  poisoned: [0, 1],
  outage: { from: 0, hours: 0 as const },
  failureRate: 0 as const,
  crashRate: 0.02 as const,
  seed: 0,
};

test('each event is accepted or given up, in order per payment, whatever fails', () => {
  fc.assert(
    fc.property(world, ({ of, poisoned, outage, ...rest }) => {
      const log = logOf([...of, 7, 7]);
      const { delivery, givenUp } = deliver({
        log,
        poisoned: new Set(poisoned.map((n) => `pay_${n}`)),
        outageMs: { from: outage.from, to: outage.from + outage.hours * HOUR },
        ...rest,
      });
      const isPoisoned = (key: string) => poisoned.some((n) => key.startsWith(`pay_${n}/`));
      expect([...givenUp].every(isPoisoned)).toBe(true);
      expect(delivery.busy.size).toBe(0);
    }),
    {
      numRuns: propertyRuns(15),
      // Eight revisions of one payment, each of which has to be given up before the next.
      examples: [[ALL_POISONED]],
    },
  );
});

const healthy = {
  poisoned: new Set<string>(),
  outageMs: { from: 0, to: 0 },
  failureRate: 0,
  crashRate: 0,
  seed: 1,
};

test('an endpoint that is well gets sixteen requests at a time, and one for each event', () => {
  const { requests, delivery } = deliver({
    ...healthy,
    log: logOf(Array.from({ length: 50 }, (_, n) => n)),
  });
  expect(requests).toEqual({ count: 50, most: 16 });
  expect(delivery.row).toMatchObject({ checkpoint: '50', retrying: {}, oldestWaiting: null });
});

const read = (row: DeliveryRow, log: Wanted[]): Delivery =>
  readOn(beginDelivery(row), log, log.at(-1)?.place ?? { position: null, hash: null });
const sendNext = (delivery: Delivery, nowMs: number) => {
  const { send } = nextStep(delivery, nowMs);
  if (send === undefined) throw new Error('nothing is to be sent');
  return { item: send, delivery: started(delivery, send) };
};

const single = (kind: Single['kind'], id: string, nextAt: number): Single => ({
  ...{ id, kind, revision: 0, n: 0, since: 0, nextAt },
});

test('no event is tried beside so many that wait that the row could have more than a hundred', () => {
  const waits = { from: 0, to: 0, n: 1, since: 0, nextAt: HOUR };
  const ids = Array.from({ length: RETRYING_MAX - 1 }, (_, n) => `pay_waits_${n}`);
  const retrying = Object.fromEntries(ids.map((id) => [id, waits]));
  const row = { ...newDeliveryRow(null, 0), window: 4, retrying };
  const first = sendNext(read(row, logOf([1, 2])), 0);
  expect(nextStep(first.delivery, 0).send).toBeUndefined();
  const accepting = accepted(first.delivery, first.item, 0, 0);
  expect(nextStep(accepting, 0).send).toMatchObject({ paymentId: 'pay_2' });
});

describe('an endpoint has as many requests at a time as it bears', () => {
  const windowAfter = (window: number, latencyMs: number): number => {
    const row = { ...newDeliveryRow(null, 0), window };
    const { item, delivery } = sendNext(read(row, logOf([1])), 0);
    return accepted(delivery, item, 0, latencyMs).row.window;
  };

  test.each([
    ['one more after a quick success', 1, 1_000, 2],
    ['never more than its merchant has places', 16, 10, 16],
    ['half as many after a slow success', 16, 1_001, 8],
    ['never less than four for slowness alone', 4, 5_000, 4],
    ['and grows to these four though it is slow', 2, 5_000, 3],
  ])('%s', (_what, window, latencyMs, then) => {
    expect(windowAfter(window, latencyMs)).toBe(then);
  });

  test('half as many after a failure', () => {
    const row = { ...newDeliveryRow(null, 0), window: 16 };
    const { item, delivery } = sendNext(read(row, logOf([1])), 0);
    expect(failed(delivery, item, 0, { random }).delivery.row.window).toBe(8);
    const ours = { random, ours: 'interrupted' } as const;
    expect(failed(delivery, item, 0, ours).delivery.row.window).toBe(16);
  });
});

describe('a failure', () => {
  test('waits as long as the endpoint requested, an hour at most', () => {
    const first = sendNext(read(newDeliveryRow(null, 0), logOf([1, 2])), 0);
    const requested = (retryAfterMs: number) =>
      failed(first.delivery, first.item, 0, { random, retryAfterMs });
    expect(requested(MINUTE).nextAt).toBe(MINUTE);
    expect(requested(9 * HOUR).nextAt).toBe(HOUR);
    expect(nextStep(requested(MINUTE).delivery, MINUTE - 1).send).toBeUndefined();
    expect(nextStep(requested(MINUTE).delivery, MINUTE).send).toBeDefined();
  });

  test('days after a failed test is a first one', () => {
    const row = { ...newDeliveryRow(null, 0), singles: [single('test', 'evt_1', 0)] };
    const test = sendNext(beginDelivery(row), 0);
    const tested = failed(test.delivery, test.item, 0, { random }).delivery;
    const next = sendNext(readOn(tested, logOf([1]), { position: '1', hash: null }), 80 * HOUR);
    const { delivery } = failed(next.delivery, next.item, 80 * HOUR, { random });
    expect(delivery.row).toMatchObject({ fails: 1, failingSince: 80 * HOUR });
  });

  test('does not disable an endpoint before its fifth in a row', () => {
    const row = { ...newDeliveryRow(null, 0), fails: 1, failingSince: 0 };
    const next = sendNext(read(row, logOf([1])), 80 * HOUR);
    const { isOver, nextAt } = failed(next.delivery, next.item, 80 * HOUR, { random });
    expect([isOver, nextAt]).toEqual([false, 80 * HOUR + 5_000]);
  });

  test('of the event store is no attempt, and no test is given up for it', () => {
    const ours = 'interrupted';
    const poison = { from: 0, to: 0, n: ATTEMPTS_OF_ONE_MAX - 1, since: 0, nextAt: 0 };
    const singles = [single('test', 'evt_1', 0)];
    const row = { ...newDeliveryRow(null, 0), window: 2, retrying: { pay_1: poison }, singles };
    let delivery = beginDelivery(row);
    for (const _ of ['the test', 'pay_1']) {
      const next = sendNext(delivery, 0);
      ({ delivery } = failed(next.delivery, next.item, 0, { random, ours }));
    }
    expect(delivery.row.singles).toMatchObject([{ id: 'evt_1', n: 0, nextAt: 5_000 }]);
    expect(delivery.row.retrying).toEqual({ pay_1: { ...poison, nextAt: 5_000 } });
    expect(nextStep(delivery, 4_999).send).toBeUndefined();
  });
});

test('a message is given up after 14 attempts in three days, while others are accepted', () => {
  const poison = { from: 3, to: 4, n: 0, since: 0, nextAt: 0 };
  let delivery = beginDelivery({ ...newDeliveryRow('9', 0), retrying: { pay_1: poison } });
  let nowMs = 0;
  let attempts = 0;
  while (delivery.row.retrying.pay_1?.from === 3) {
    nowMs = Math.max(nowMs, delivery.row.retrying.pay_1.nextAt);
    const next = sendNext(delivery, nowMs);
    attempts += 1;
    if (attempts > 100) throw new Error('never given up');
    const after = failed(next.delivery, next.item, nowMs, { random });
    delivery = { ...after.delivery, row: { ...after.delivery.row, fails: 0, failingSince: null } };
  }
  expect([attempts, nowMs / HOUR]).toEqual([ATTEMPTS_OF_ONE_MAX, expect.closeTo(69.6, 1)]);
  expect(nextStep(delivery, nowMs).send).toMatchObject({ paymentId: 'pay_1', revision: 4 });
});

describe('a failing endpoint', () => {
  const FAILING = { fails: 6, failingSince: 0, probeAt: 0 };

  test('is asked by unread events and retrying payments too, while a resend always fails', () => {
    const retrying = { pay_2: { from: 0, to: 0, n: 3, since: 0, nextAt: 0 } };
    const row = { ...newDeliveryRow(null, 0), ...FAILING, retrying };
    const singles = [single('resend', 'evt_1', 0)];
    let delivery = read({ ...row, singles }, logOf([1]));
    const sent: string[] = [];
    for (let probes = 0; probes < 3; probes += 1) {
      const next = sendNext(delivery, delivery.row.probeAt);
      sent.push(next.item.id);
      ({ delivery } = failed(next.delivery, next.item, delivery.row.probeAt, { random }));
    }
    expect(sent).toEqual(['pay_1', 'pay_2', 'evt_1']);
  });

  test.each(['unreadable', 'interrupted'] as const)(
    'waits for its next probe after a failure of ours: %s',
    (ours) => {
      const due = { from: 0, to: 0, n: 5, since: 0, nextAt: 0 };
      const retrying = { pay_1: due, pay_2: { ...due, nextAt: HOUR } };
      const row = { ...newDeliveryRow(null, 0), ...FAILING, retrying };
      const next = sendNext(beginDelivery(row), 0);
      const nowMs = 100 * HOUR;
      const { delivery, isOver } = failed(next.delivery, next.item, nowMs, { random, ours });
      expect(nextStep(delivery, nowMs + 29_999).send).toBeUndefined();
      expect(nextStep(delivery, nowMs + 30_000).send).toBeDefined();
      expect([delivery.row.fails, isOver]).toEqual([6, false]);
    },
  );

  test('is well again once nothing is left that it rejected', () => {
    const unwanted = { from: 0, to: 0, n: 5, since: 0, nextAt: 0 };
    const row = { ...newDeliveryRow(null, 0), ...FAILING, retrying: { pay_1: unwanted } };
    const next = sendNext(beginDelivery(row), 0);
    expect(passed(next.delivery, next.item, 0).row).toMatchObject({ fails: 0, failingSince: null });
  });

  test('is sent a test before its next probe, though a notice waits longer, and not beside another request', () => {
    const singles = [single('notice', 'evt_1', 0), single('test', 'evt_2', 5)];
    const row = { ...newDeliveryRow(null, 0), ...FAILING, probeAt: HOUR, singles };
    const { item, delivery } = sendNext(beginDelivery(row), 10);
    expect(item).toMatchObject({ id: 'evt_2' });
    const more = { ...delivery.row, singles: [...singles, single('test', 'evt_3', 10)] };
    expect(nextStep({ ...delivery, row: more }, 10).send).toBeUndefined();
  });
});

describe('a test', () => {
  const tests = [single('test', 'evt_1', 0), single('test', 'evt_2', 0)];

  test('takes a place in the window of its endpoint', () => {
    const sending = sendNext(read(newDeliveryRow(null, 0), logOf([1])), 0).delivery;
    const full = { ...sending, row: { ...sending.row, singles: tests } };
    expect(nextStep(full, 0).send).toBeUndefined();
    const wider = { ...full, row: { ...full.row, window: 2 } };
    expect(nextStep(wider, 0).send).toMatchObject({ id: 'evt_1' });
  });

  test('waits for the one before it, and keeps nothing else waiting meanwhile', () => {
    const row = { ...newDeliveryRow(null, 0), window: 4, singles: tests };
    const first = sendNext(read(row, logOf([1])), 0);
    const second = sendNext(first.delivery, 0);
    expect([first.item.kind, second.item.kind]).toEqual(['test', 'unread']);
    expect(nextStep(second.delivery, 0).send).toBeUndefined();
    const { delivery } = failed(second.delivery, first.item, 0, { random });
    expect(nextStep(delivery, 0).send).toMatchObject({ id: 'evt_2' });
  });
});

describe('events of its endpoint', () => {
  const endpoint = {
    endpointId: 'we_1',
    merchantId: 'm_1',
    after: '5',
    createdAt: new Date(HOUR).toISOString(),
  } as Endpoint;
  const recorded = (type: string, data: object, revision: number) =>
    ({
      id: `evt_${revision}`,
      revision,
      time: new Date(2 * HOUR).toISOString(),
      event: { type, data },
    }) as never;
  const at = {
    ...beginDelivery({
      ...newDeliveryRow('90', 1),
      retrying: { pay_1: { from: 2, to: 2, n: 1, since: 0, nextAt: 9e9 } },
    }),
  };

  test('each is followed once, also over a restart', () => {
    const events = [recorded('WebhookTestRequested', { endpointId: 'we_1' }, 2)];
    const followed = followEndpointEvents(at, endpoint, events, 0);
    expect(followed.row.singles).toHaveLength(1);
    const stored = textOfDeliveryRow(followed.row);
    // Processes of other versions read it too.
    expect(stored).toContain('"commands":2');
    const again = beginDelivery(parseDeliveryRow(stored));
    expect(followEndpointEvents(again, endpoint, events, 0).row).toEqual(followed.row);
  });

  test('tests that wait give way to later ones, so that a row that was lost sends four', () => {
    const requested = (revision: number) =>
      recorded('WebhookTestRequested', { endpointId: 'we_1' }, revision);
    const followed = followEndpointEvents(at, endpoint, [2, 3, 4, 5, 6, 7].map(requested), 0);
    const idsOf = ({ row }: typeof followed) => row.singles.map(({ id }) => id);
    expect(idsOf(followed)).toEqual(['evt_4', 'evt_5', 'evt_6', 'evt_7']);
    const sending = started(followed, single('test', 'evt_4', 0));
    const after = followEndpointEvents(sending, endpoint, [requested(8), requested(9)], 0);
    expect(idsOf(after)).toEqual(['evt_4', 'evt_6', 'evt_7', 'evt_8', 'evt_9']);
  });

  test('a resend reads again from the start up to where it was, and keeps what is retrying', () => {
    const since = new Date(90 * MINUTE).toISOString();
    const events = [recorded('WebhookResendRequested', { endpointId: 'we_1', since }, 2)];
    const { row, readTo } = followEndpointEvents(at, endpoint, events, 0);
    expect(readTo.position).toBe('5');
    expect(row).toMatchObject({ checkpoint: '5', rescan: { upTo: '90', before: 90 * MINUTE } });
    expect(row.retrying).toEqual(at.row.retrying);
    const earlier = [
      recorded(
        'WebhookResendRequested',
        { endpointId: 'we_1', since: new Date(0).toISOString() },
        2,
      ),
    ];
    expect(followEndpointEvents(at, endpoint, earlier, 0).row.checkpoint).toBeNull();
  });
});
