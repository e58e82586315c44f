/**
 * One operation of each kind meets one fault on one of its requests to Stripe, is asked about until
 * its outcome is known, and is compared with what Stripe's books say of it.
 */
import { afterEach, beforeEach } from '@jest/globals';
import type {
  OperationQuestion,
  Provider,
  ProviderOperation,
  ProviderOperationKind,
} from '../../providers/port.ts';
import { stripeProvider } from '../../providers/stripe/provider.ts';
import { STRIPE_API_VERSION_DEFAULT } from '../../shared/runtime/settings/table.ts';
import { authorize, followUp } from './provider-operations.ts';
import type { Books } from './stripe-double/books.ts';
import {
  FAULTS,
  type Step,
  type StripeDouble,
  type StripeFaultName,
  stripeDouble,
} from './stripe-double/server.ts';
import { AWAITED_MS, HANGS_MS } from './time-bounds.ts';

export const TEST_ACCOUNT = { secretKey: 'sk_test_of_the_tests' };

/** The driver as the tests use it, over a double or a peer. */
export const driverOver = (
  url: string,
  options: Partial<Parameters<typeof stripeProvider>[0]> = {},
): Provider =>
  stripeProvider({
    url,
    version: STRIPE_API_VERSION_DEFAULT,
    connectTimeoutMs: HANGS_MS,
    timeoutMs: HANGS_MS,
    accounts: { installation: TEST_ACCOUNT },
    testTokens: true,
    perSecondMax: 0,
    ...options,
  });

/** Before each test of a file a new double with the driver over it; `aheadMs`: of our clock, or of both. */
export const overDouble = (isOneClock = false) => {
  const over = { aheadMs: 0 } as { double: StripeDouble; provider: Provider; aheadMs: number };
  const nowMs = () => Date.now() + over.aheadMs;
  beforeEach(async () => {
    over.aheadMs = 0;
    over.double = await stripeDouble(isOneClock ? nowMs : Date.now);
    over.provider = driverOver(over.double.url, { nowMs });
  });
  afterEach(async () => {
    await over.provider.close();
    await over.double.close();
  });
  return over;
};

/** What it has received, by their steps. */
export const stepsAt = ({ received }: StripeDouble): (Step | undefined)[] =>
  received.map(({ step }) => step);

/** The requests of an operation of each kind, in order; the last one moves the money. */
export const STEPS_OF: Readonly<Record<ProviderOperationKind, readonly Step[]>> = {
  AUTHORIZE: ['open', 'method', 'confirm'],
  SALE: ['open', 'method', 'confirm'],
  CAPTURE: ['capture'],
  VOID: ['update', 'cancel'],
  REFUND: ['refund'],
};

type FaultCase = { kind: ProviderOperationKind; step: Step; fault: StripeFaultName };

/** Every fault on every request of every kind. */
export const ALL_CASES: readonly FaultCase[] = Object.entries(STEPS_OF).flatMap(([kind, steps]) =>
  steps.flatMap((step) =>
    FAULTS.map((fault) => ({ kind: kind as ProviderOperationKind, step, fault })),
  ),
);

/** The requests that move money, for one kind of each road. */
export const FAST_CASES: readonly FaultCase[] = ALL_CASES.filter(
  ({ kind, step }) => kind !== 'SALE' && step === STEPS_OF[kind].at(-1),
);

export const keepIt = async (): Promise<void> => undefined;

/** As recovery asks; `reference` is the PaymentIntent that a create opened. */
export const questionOf = (
  operation: ProviderOperation,
  reference?: string,
  atMs = Date.now(),
): OperationQuestion => ({ ...operation, reference, requestedAt: new Date(atMs).toISOString() });

/** The outcome, and the PaymentIntent that was opened for it. */
export const executed = async (provider: Provider, operation: ProviderOperation) => {
  let reference: string | undefined;
  const outcome = await provider.execute(operation, async (opened) => {
    reference = opened;
  });
  return { outcome, reference };
};

/** A create that is approved. */
export const approvedBy = async <O extends ProviderOperation>(provider: Provider, operation: O) => {
  const { outcome, reference = '' } = await executed(provider, operation);
  if (outcome.outcome !== 'APPROVED') throw new Error(JSON.stringify(outcome));
  return { operation, reference, authorizationReference: reference };
};

type Kept = ReturnType<Books['all']>;

/** By the fence of its own create: the Dashboard can choose the reason of the cancel as well. */
export const wasFenced = ({ cancellation_reason: reason, metadata }: Kept['intents'][number]) =>
  reason === 'abandoned' && metadata.fencedOperationId === metadata.operationId;

/** What Stripe's books say of an operation: how often it moved money, or held it. */
export const timesMovedIn = (
  { intents, refunds }: Kept,
  { operationId, kind }: ProviderOperation,
): number => {
  switch (kind) {
    case 'AUTHORIZE':
    case 'SALE':
      return intents.filter(
        (intent) =>
          intent.metadata.operationId === operationId &&
          intent.latest_charge?.status === 'succeeded' &&
          !wasFenced(intent),
      ).length;
    case 'CAPTURE':
      return intents.filter(({ metadata }) => metadata.captureOperationId === operationId).length;
    case 'VOID':
      return intents.filter(
        ({ metadata, status }) => metadata.voidOperationId === operationId && status === 'canceled',
      ).length;
    case 'REFUND':
      return refunds.filter(({ metadata }) => metadata.operationId === operationId).length;
  }
};

/** The operation under test, with the authorization it needs. */
export const prepared = async (
  provider: Provider,
  kind: ProviderOperationKind,
): Promise<ProviderOperation> => {
  if (kind === 'AUTHORIZE' || kind === 'SALE') return authorize(undefined, { kind });
  const first = authorize(undefined, { kind: kind === 'REFUND' ? 'SALE' : 'AUTHORIZE' });
  const { authorizationReference } = await approvedBy(provider, first);
  return followUp(kind, first, { authorizationReference });
};

export type Finding = FaultCase & {
  /** What the call said. */
  called: string;
  /** What is known in the end. */
  known: string;
  moved: number;
};

/** Asks as recovery does: a look-up, and the fence where nothing is found. */
export const askOnce = async (provider: Provider, question: OperationQuestion): Promise<string> => {
  const found = await provider.lookUp(question);
  if (found.outcome !== 'NOT_FOUND') return found.outcome;
  return (await provider.fence(question)).outcome;
};

const runFaultCase = async ({ kind, step, fault }: FaultCase): Promise<Finding> => {
  const double = await stripeDouble();
  // Raw numbers, so that the request that makes the payment method is sent too.
  const provider = driverOver(double.url, {
    testTokens: false,
    ...(/^(hangs|acts late)/.test(fault) && { timeoutMs: 3 * AWAITED_MS }),
  });
  try {
    const operation = await prepared(provider, kind);
    double.plan(step, fault);
    const { outcome, reference } = await executed(provider, operation);
    const { outcome: called } = outcome;
    let known: string = called;
    if (called === 'UNKNOWN') {
      known = await askOnce(provider, questionOf(operation, reference));
      // What comes late was fenced meanwhile, or is found by a later question.
      await double.actLate();
      if (known === 'UNKNOWN') known = await askOnce(provider, questionOf(operation, reference));
    }
    const moved = timesMovedIn(double.books.all(), operation);
    return { kind, step, fault, called, known, moved };
  } finally {
    await provider.close();
    await double.close();
  }
};

/** Runs cases, so many at once. */
export const runFaultCases = async (
  cases: readonly FaultCase[],
  atOnce: number,
): Promise<Finding[]> => {
  const left = [...cases];
  const findings: Finding[] = [];
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      findings.push(await runFaultCase(next));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return findings;
};

/** The findings that say other than Stripe's books, or where Stripe acted more than once. */
export const outcomesThatLie = (findings: readonly Finding[]): Finding[] =>
  findings.filter(({ known, moved }) => {
    if (moved > 1) return true;
    // Of what is unknown nothing is said.
    return known !== 'UNKNOWN' && (known === 'APPROVED') !== (moved === 1);
  });
