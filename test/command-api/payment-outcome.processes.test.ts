/**
 * gaps §7: each 503 to a POST of a payment says for programs whether money may have moved. NOT_CHARGED is
 * said where nothing was stored or sent, or nothing was carried out for sure; under a key of every request
 * that had it, for a merchant who is told so gives the order up.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { StoreUnavailable, StreamNotWhole } from '../../shared/event-store/errors.ts';
import {
  type CommandResponse,
  type InProcess,
  idOf,
  leaveUnresolved,
  locatedId,
  NO_RETRIES,
  openInProcess,
  PAYMENTS,
  payment,
} from '../support/service-in-process.ts';
import {
  authorizedAt,
  type CommandProcess,
  processesOfTests,
  warmUp,
} from '../support/two-command-processes.ts';

type Options = { key?: string };
/** What is said without a key of a request that gets 503 in process a. */
type Row = [
  name: string,
  said: string,
  send: (a: CommandProcess, options: Options) => Promise<CommandResponse>,
];

const NOT_CHARGED = 'NOT_CHARGED';
const UNKNOWN = 'UNKNOWN';

const BUDGET = { REQUEST_BUDGET_MS: '1000', PROVIDER_TIMEOUT_MS: '1000' };

const processes = await processesOfTests({ ...NO_RETRIES, ...BUDGET });
await warmUp(processes.a, processes.b);
afterEach(() => {
  const { a } = processes;
  a.faults.forget();
  a.faults.away = false;
  a.app.lifecycle.refusing = false;
});

const CARD = { token: 'tok_visa', holderName: 'Jane Doe' };
const byToken = (fields: object = {}) =>
  payment({ ...fields, paymentMethod: { type: 'CARD', card: CARD } });
const isDown = async (): Promise<never> => {
  throw new StoreUnavailable('connection refused');
};
const isRemoved = async (): Promise<never> => {
  throw new StreamNotWhole('a payment', 'its stream was deleted');
};
/** Once its intent is stored, each later append fails. */
const failsAfterIntent = (a: CommandProcess): void => {
  const begun = new Set<string>();
  a.store.beforeAppend = async (stream) => {
    if (begun.has(stream)) await isDown();
    begun.add(stream);
  };
};

const ROWS: Row[] = [
  [
    'a service that is told to stop',
    NOT_CHARGED,
    (a, options) => {
      a.app.lifecycle.refusing = true;
      return a.create({}, options);
    },
  ],
  [
    'too many requests at once',
    NOT_CHARGED,
    async (a, options) => {
      const { places } = a.app.lifecycle;
      const free = 10_000 - places.taken();
      places.take(undefined, free);
      const response = await a.create({}, options);
      places.take(undefined, -free);
      return response;
    },
  ],
  [
    'an event store that cannot be read',
    NOT_CHARGED,
    async (a, options) => {
      const id = await authorizedAt(processes.b);
      a.store.beforeRead = isDown;
      return a.change('capture', id, undefined, options);
    },
  ],
  [
    'an event store that takes no intent',
    NOT_CHARGED,
    (a, options) => {
      a.store.beforeAppend = isDown;
      return a.create({}, options);
    },
  ],
  [
    'a payment whose events were removed',
    NOT_CHARGED,
    async (a, options) => {
      const id = await authorizedAt(processes.b);
      a.store.beforeRead = isRemoved;
      return a.change('void', id, undefined, options);
    },
  ],
  [
    'an intent of which it is not known whether it was stored',
    UNKNOWN,
    (a, options) => {
      a.store.loseResponses = Number.POSITIVE_INFINITY;
      return a.create({}, options);
    },
  ],
  [
    'an outcome that could not be stored',
    UNKNOWN,
    (a, options) => {
      failsAfterIntent(a);
      return a.create({}, options);
    },
  ],
  [
    'a call that outlasts the budget',
    UNKNOWN,
    async (a, options) => {
      const held = a.faults.holdNext();
      const response = await a.create({}, options);
      held.release();
      return response;
    },
  ],
  [
    'a lost answer',
    UNKNOWN,
    (a, options) => {
      a.faults.respondsToLookUps = false;
      a.faults.next('answer lost');
      return a.create({}, options);
    },
  ],
  [
    'a turn that does not come',
    NOT_CHARGED,
    async (a, options) => {
      const id = await authorizedAt(a);
      const held = await a.faults.hold(() => a.change('capture', id));
      const response = await a.change('void', id, undefined, options);
      held.release();
      await held.response;
      return response;
    },
  ],
  [
    'a capture behind a create of unknown outcome',
    UNKNOWN,
    async (a, options) => {
      a.faults.respondsToLookUps = false;
      a.faults.next('answer lost');
      const id = locatedId(await a.create());
      return a.change('capture', id, undefined, options);
    },
  ],
];

const outcomeOf = ({ status, headers }: CommandResponse) => [status, headers['payment-outcome']];

describe.each(ROWS)('%s', (name, said, send) => {
  test(`says ${said}`, async () => {
    expect(outcomeOf(await send(processes.a, {}))).toEqual([503, said]);
  });

  test('says UNKNOWN under a key', async () => {
    const key = name.replaceAll(' ', '-');
    expect(outcomeOf(await send(processes.a, { key }))).toEqual([503, UNKNOWN]);
  });
});

describe('NOT_CHARGED is said with and without a key where it is proven', () => {
  test.each<[string, (at: InProcess, options: Options) => Promise<CommandResponse>]>([
    [
      'a create that was not sent',
      (at, options) => {
        at.faults.next('not sent');
        return at.create({}, options);
      },
    ],
    [
      'a refund that was not sent',
      async (at, options) => {
        const id = idOf(await at.create({ captureNow: true }));
        at.faults.next('not sent');
        return at.change('refund', id, undefined, options);
      },
    ],
    [
      'a repeat whose first call never arrived, found by the fence',
      async (at, options) => {
        const id = idOf(await at.create());
        at.faults.respondsToLookUps = false;
        at.faults.next('call lost');
        const first = await at.change('capture', id, undefined, options);
        expect(outcomeOf(first)).toEqual([503, UNKNOWN]);
        at.faults.respondsToLookUps = true;
        at.faults.next('not sent');
        return at.change('capture', id, undefined, options);
      },
    ],
    [
      'a token that the provider could not be options about',
      (at, options) => {
        at.faults.respondsToLookUps = false;
        return at.ask('POST', PAYMENTS, byToken(), options);
      },
    ],
  ])('%s', async (_name, send) => {
    for (const options of [{}, { key: 'k' }]) {
      await using service = await openInProcess(NO_RETRIES);
      expect(outcomeOf(await send(service, options))).toEqual([503, NOT_CHARGED]);
    }
  });
});

describe('what an earlier request may have done is UNKNOWN without a key too', () => {
  const reference = { merchantReference: 'order-7' };

  test('of an equal create that is unresolved, which this one joins', async () => {
    const { a } = processes;
    a.faults.respondsToLookUps = false;
    a.faults.next('answer lost');
    const first = await a.create(reference);
    a.store.beforeRead = isDown;
    const again = await a.create(reference);
    expect([outcomeOf(first), outcomeOf(again)]).toEqual([
      [503, UNKNOWN],
      [503, UNKNOWN],
    ]);
  });

  test('of an equal refund that is unresolved, which this one joins', async () => {
    await using service = await openInProcess({ ...NO_RETRIES, ...BUDGET });
    const { faults } = service;
    const id = idOf(await service.create({ captureNow: true }));
    await leaveUnresolved(service, 'answer lost', () => service.change('refund', id));
    const held = Promise.withResolvers<void>();
    faults.beforeResponse = held.promise;
    const again = await service.change('refund', id);
    held.resolve();
    expect([...outcomeOf(again), locatedId(again)]).toEqual([503, UNKNOWN, id]);
  });

  test('where a reference stands for one payment', async () => {
    await using unique = await openInProcess({ ...NO_RETRIES, MERCHANT_REFERENCE: 'unique' });
    unique.faults.respondsToLookUps = false;
    const send = (fields: object) => unique.ask('POST', PAYMENTS, byToken(fields));
    expect(outcomeOf(await send(reference))).toEqual([503, UNKNOWN]);
    expect(outcomeOf(await send({}))).toEqual([503, NOT_CHARGED]);
  });
});

test('no other response has the header', async () => {
  const { a } = processes;
  const declined = payment({ number: '4000000000000002' });
  const responses = [
    await a.create(),
    await a.create({ amount: 0 }),
    await a.ask('POST', PAYMENTS, declined),
    await a.change('void', 'pay_unknown'),
  ];
  expect(responses.map(({ status }) => status)).toEqual([200, 400, 402, 404]);
  for (const { headers } of responses) expect(headers).not.toHaveProperty('payment-outcome');
});
