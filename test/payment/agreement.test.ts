/**
 * Whatever is asked of a payment, in whatever order: the operations that decide and the body that is
 * answered agree, money stays within its bounds, and no answer depends on anything but the events
 * (M1, M2, M3, M7, M8, L2, L5).
 */
import assert from 'node:assert/strict';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type {
  Command,
  FinalOutcomeDetails,
  RequestedAmount,
} from '../../shared/payment/commands.ts';
import { decide } from '../../shared/payment/decide.ts';
import {
  type PaymentEvent,
  type PlacedEvent,
  paymentSchemas,
} from '../../shared/payment/events.ts';
// At every step of a property node's own: a matcher of Jest there takes longer than the folds.
import { evolve, foldReadModel, foldState } from '../../shared/payment/fold.ts';
import {
  type Operation,
  type PaymentState,
  unresolvedOperations,
} from '../../shared/payment/state.ts';
import { minor } from '../../shared/payment/transitions.ts';
import {
  authenticate,
  capture,
  create,
  open,
  record,
  refund,
  voidIt,
} from '../support/commands.ts';
import { operationId, timeOf } from '../support/payment-events.ts';
import { bodyUnopened } from '../support/personal-data.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { COMMANDS, type Kind, SUB_STATES, subStateOf } from './decide-table.ts';

const MAX = 1000;

type Step = {
  kind: Kind;
  /** `above` counts from the most that would be allowed just then. */
  amount: RequestedAmount | undefined | { above: 0 | 1 };
  outcome: FinalOutcomeDetails;
  /** Which of the payment's operations is meant, where one is: a fraction of their number. */
  which: number;
  /** Whether a capture, void or refund comes again under the id that it had before. */
  again: boolean;
};

type Payment = {
  events: PlacedEvent[];
  state: PaymentState | undefined;
};

const amounts = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: MAX + 1 }).map(minor) },
  { weight: 5, arbitrary: fc.integer({ min: 1, max: MAX / 10 }).map(minor) },
  { weight: 2, arbitrary: fc.constantFrom({ above: 0 as const }, { above: 1 as const }) },
  { weight: 1, arbitrary: fc.constant('too large' as const) },
);

const outcomes = fc.oneof(
  { weight: 5, arbitrary: fc.constant<FinalOutcomeDetails>({ outcome: 'APPROVED' }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<FinalOutcomeDetails>(
      { outcome: 'DECLINED', failureCode: 'CARD_DECLINED', providerFailureCode: '05' },
      { outcome: 'DECLINED', failureCode: 'UNKNOWN_DECLINE' },
      { outcome: 'NOT_SENT' },
      { outcome: 'FENCED' },
    ),
  },
);

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom(
      'create',
      'open',
      'authenticate',
      'capture',
      'capture',
      'void',
      'refund',
      'refund',
      'record',
      'record',
      'record',
    ),
    amount: amounts,
    outcome: outcomes,
    which: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    again: fc.nat({ max: 4 }).map((n) => n === 0),
  }),
  // Without a size no list is longer than ten, and two partial refunds are hardly ever reached.
  { maxLength: 40, size: 'max' },
);

const first = fc.record({
  captureNow: fc.constantFrom(false, false, false, true),
  amount: fc.integer({ min: 1, max: MAX }),
});

const operationsOf = (state: PaymentState | undefined): readonly Operation[] =>
  state?.operations ?? [];

/** An open operation more often than not, so that outcomes have something to end. */
const pick = (state: PaymentState | undefined, which: number): string => {
  const open = unresolvedOperations(state);
  const all = operationsOf(state);
  const pool = open.length > 0 && which < 0.8 ? open : all;
  return pool[Math.floor(which * pool.length)]?.operationId ?? operationId(0);
};

const NOTHING = { authorizedAmount: 0, capturedAmount: 0, refundedAmount: 0 };
const amountsOf = (state: PaymentState | undefined) => state ?? NOTHING;

const total = (numbers: number[]): number => numbers.reduce((before, n) => before + n, 0);
const reservedIn = (state: PaymentState | undefined): number =>
  total(unresolvedOperations(state).flatMap((o) => (o.kind === 'refund' ? [o.amount] : [])));

/** The most that a capture or refund may ask for. */
const ceilingOf = (state: PaymentState | undefined): number => {
  const { authorizedAmount, capturedAmount, refundedAmount } = amountsOf(state);
  if (state?.status === 'AUTHORIZED') return authorizedAmount;
  return capturedAmount - refundedAmount - reservedIn(state);
};

const amountIn = (
  state: PaymentState | undefined,
  amount: Step['amount'],
): RequestedAmount | undefined =>
  typeof amount === 'object' ? minor(Math.max(1, ceilingOf(state) + amount.above)) : amount;

const commandFor = (state: PaymentState | undefined, step: Step, n: number): Command => {
  const { kind, amount, outcome, which, again } = step;
  const id = again ? pick(state, which) : operationId(n + 1);
  const fields = { operationId: id, amount: amountIn(state, amount) };
  switch (kind) {
    case 'create':
      return create({ operationId: id });
    case 'open':
      return open(operationsOf(state)[0]?.operationId ?? operationId(0));
    case 'authenticate':
      return authenticate(operationsOf(state)[0]?.operationId ?? operationId(0));
    case 'record':
      return record(pick(state, which), outcome);
    case 'capture':
      return capture(fields);
    case 'void':
      return voidIt(fields);
    case 'refund':
      return refund(fields);
  }
};

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const inner of Object.values(Object.freeze(value))) deepFreeze(inner);
  }
  return value;
};

const append = (before: Payment, decided: readonly PaymentEvent[]): Payment =>
  decided.reduce<Payment>((payment, event) => {
    const revision = payment.events.length;
    const next = deepFreeze({ revision, time: timeOf(revision), event });
    return {
      events: [...payment.events, next],
      state: deepFreeze(evolve(payment.state, next)),
    };
  }, before);

const afterResponse = (payment: Payment, command: Command): Payment => {
  const decision = decide(payment.state, command);
  return decision.kind === 'events' ? append(payment, decision.events) : payment;
};

type Seen = (payment: Payment, command: Command, after: Payment) => void;

const live = (
  begin: { captureNow: boolean; amount: number },
  requested: Step[],
  seen: Seen,
): Payment => {
  let payment: Payment = { events: [], state: undefined };
  const step = (command: Command) => {
    const after = afterResponse(payment, command);
    seen(payment, command, after);
    payment = after;
  };
  step(create({ ...begin, operationId: operationId(0) }));
  requested.forEach((next, n) => {
    step(commandFor(payment.state, next, n));
  });
  return payment;
};

const always = (seen: Seen, runs = propertyRuns(300)): void => {
  fc.assert(
    fc.property(first, steps, (begin, requested) => {
      live(begin, requested, seen);
    }),
    { numRuns: runs },
  );
};

describe('the operations of a state agree with what responses show', () => {
  test('on what is unresolved and what is left to refund', () => {
    always((_before, _command, { state }) => {
      const { capturedAmount, refundedAmount } = amountsOf(state);
      assert.equal(state?.refundableAmount, capturedAmount - refundedAmount - reservedIn(state));
      assert.deepEqual(
        state?.unresolved.map((o) => o.operationId),
        unresolvedOperations(state).map((o) => o.operationId),
      );
    });
  });

  test('on the finished attempts and their results', () => {
    always((_before, _command, { state }) => {
      const finished = operationsOf(state)
        .filter((o) => o.ended !== undefined)
        .sort((a, b) => (a.ended?.revision ?? 0) - (b.ended?.revision ?? 0))
        .map((o) => [o.operationId, o.amount, o.ended?.outcome === 'APPROVED']);
      const listed = state?.transactions.map((t) => [
        t.id.slice(-26),
        t.amount,
        t.result === 'SUCCEEDED',
      ]);
      assert.deepEqual(listed, finished);
    });
  });
});

describe('money', () => {
  test('M1: captured never exceeds authorized, nor authorized the created amount', () => {
    always((_before, _command, { state }) => {
      const { authorizedAmount, capturedAmount } = amountsOf(state);
      assert.ok(capturedAmount <= authorizedAmount);
      if (state !== undefined) assert.ok(authorizedAmount <= state.amount);
    });
  });

  test('M2: refunds, open ones included, never exceed captured', () => {
    always((_before, _command, { state }) => {
      const { capturedAmount, refundedAmount } = amountsOf(state);
      assert.ok(refundedAmount + reservedIn(state) <= capturedAmount);
    });
  });

  test('M3: of captures and voids at most one succeeds, and one is open at a time', () => {
    always((_before, _command, { state, events }) => {
      const succeeded = events.filter(
        ({ event }) => event.type === 'PaymentCaptured' || event.type === 'PaymentVoided',
      );
      assert.ok(succeeded.length <= 1);
      const exclusive = unresolvedOperations(state).filter((o) => o.kind !== 'refund');
      assert.ok(exclusive.length <= 1);
    });
  });

  test('M7: every amount of every event is an integer from 1 to the maximum, and can be stored', () => {
    always((before, _command, { events }) => {
      for (const { event } of events.slice(before.events.length)) {
        assert.deepEqual(paymentSchemas[event.type].parse(event.data), event.data);
        assert.ok(Object(event.data).amount <= MAX);
      }
    });
  });

  test('M7: what is captured and what is released are the authorized amount', () => {
    always((before, _command, { events }) => {
      const { authorizedAmount } = amountsOf(before.state);
      for (const { event } of events.slice(before.events.length)) {
        if (event.type !== 'PaymentCaptured' || authorizedAmount === 0) continue;
        assert.equal(event.data.amount + (event.data.releasedAmount ?? 0), authorizedAmount);
      }
    });
  });

  test('M8: FAILED, VOIDED and REFUNDED are final: not one event follows', () => {
    always((before, _command, after) => {
      if (!['FAILED', 'VOIDED', 'REFUNDED'].includes(before.state?.status ?? '')) return;
      assert.equal(after.events.length, before.events.length);
    });
  });
});

describe('commands', () => {
  test('every command is safe to repeat', () => {
    always((_before, command, after) => {
      // What was refused may be allowed later: only what was begun has to stay as it is.
      const { operationId: id } = command;
      if (!operationsOf(after.state).some((o) => o.operationId === id)) return;
      assert.equal(afterResponse(after, command).events.length, after.events.length);
    });
  });

  test('every cell of the table is met, and no state without a row', () => {
    const cells = new Set<string>();
    always(({ state }, { kind }) => cells.add(`${subStateOf(state)} x ${kind}`), 800);
    const existing = SUB_STATES.filter((row) => row !== 'no payment');
    const expected = existing.flatMap((row) =>
      Object.keys(COMMANDS).map((kind) => `${row} x ${kind}`),
    );
    expect([...cells].sort()).toStrictEqual(['no payment x create', ...expected].sort());
  });
});

describe('L2, L5: the fold', () => {
  test('depends on the events alone: from memory, from JSON, all at once or one by one', () => {
    always((_before, _command, { events, state }) => {
      const read = JSON.parse(JSON.stringify(events)) as PlacedEvent[];
      assert.deepEqual(foldState(read), state);
      const folded = foldReadModel(read);
      if (folded === undefined || state === undefined) throw new Error('a payment without a state');
      assert.equal(bodyUnopened(folded), bodyUnopened(state));
    }, propertyRuns(100));
  });

  test('the answer to an operation is the fold up to its outcome', () => {
    always((_before, _command, { events, state }) => {
      for (const { ended, operationId: id, kind } of operationsOf(state)) {
        if (ended === undefined) continue;
        const readModel = foldReadModel(events.slice(0, ended.revision + 1));
        assert.ok(readModel?.unresolved.every((o) => o.operationId !== id));
        assert.equal(readModel?.transactions.at(-1)?.id.slice(-26), id);
        if (kind === 'create') assert.equal(readModel?.transactions.length, 1);
      }
    }, propertyRuns(100));
  });
});
