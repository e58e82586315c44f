/**
 * A provider and read models that go wrong on demand. Neither is a mock: each stands before the real
 * one, which does the work, and loses, delays or refuses what passes through.
 */
import type { KeepOpened, NotSent, Provider, ProviderOperation } from '../../providers/port.ts';
import type { LaterResult } from '../../shared/payment/commands.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';

/** What happens to one call: it acts and its answer is lost, never arrives, or is not sent, for a reason. */
export type Fault = 'answer lost' | 'call lost' | 'not sent' | NotSent;

type Held = {
  /** Resolves when the call has reached the provider. */
  begun: Promise<void>;
  /** Lets the call go on. */
  release(): void;
};

type ProviderFaults = {
  wrap(own: Provider): Provider;
  /** The next call to carry something out meets this fault. */
  next(fault: Fault): void;
  /** Drops the faults that no call has met. */
  forget(): void;
  /** The next call waits at the provider until it is released; its answer may get lost. */
  holdNext(then?: 'answer lost'): Held;
  /** Holds the call that is made here: resolves when it has begun, with its response to come. */
  hold<T>(
    make: () => Promise<T>,
    then?: 'answer lost',
  ): Promise<{ response: Promise<T>; release(): void }>;
  /** While true, the provider refuses connections: nothing is sent, asked or listed. */
  away: boolean;
  /** While false, the ledger cannot be read. */
  listsLedger: boolean;
  /** While false, questions (look up, fence) get no answer. */
  respondsToLookUps: boolean;
  /** How many questions were asked. */
  questions: number;
  /** How often each payment was looked up. */
  lookUps: Map<string, number>;
  /** Questions wait for this before they are answered. */
  beforeResponse: Promise<void> | undefined;
  /** Every call that the service made, whatever became of it. */
  calls: ProviderOperation[];
  /** What has become of a payment, by its id, in the place of what the provider says itself. */
  later: Map<string, LaterResult[]>;
  /** While false, the provider gives no notice of its own. */
  givesNotice: boolean;
  /** Gives notice of a payment. */
  notice(paymentId: string): void;
  /** A call that was lost reaches the provider after all, when no request waits for it any more. */
  arriveLate(operation: ProviderOperation): Promise<void>;
};

type Hold = { arrived(): void; released: Promise<void>; responseLost: boolean };

const UNKNOWN = { outcome: 'UNKNOWN', reason: 'timeout' } as const;

export const providerFaults = (): ProviderFaults => {
  const planned: (Fault | Hold)[] = [];
  let behind: Provider | undefined;
  let listener = (_paymentId: string): void => undefined;

  const execute = async (own: Provider, operation: ProviderOperation, opened: KeepOpened) => {
    faults.calls.push(operation);
    const plan = planned.shift();
    let responseLost = plan === 'answer lost';
    if (plan === 'call lost') return UNKNOWN;
    if (plan === 'not sent' || faults.away) return { outcome: 'NOT_SENT' } as const;
    if (typeof plan === 'object' && 'outcome' in plan) return plan;
    if (typeof plan === 'object') {
      plan.arrived();
      await plan.released;
      responseLost = plan.responseLost;
    }
    const response = await own.execute(operation, opened);
    return responseLost ? UNKNOWN : response;
  };

  const question = async <T>(ask: () => Promise<T>): Promise<T | typeof UNKNOWN> => {
    faults.questions += 1;
    await faults.beforeResponse;
    return faults.respondsToLookUps && !faults.away ? ask() : UNKNOWN;
  };

  const list = <T>(read: () => Promise<T>): Promise<T> =>
    faults.listsLedger && !faults.away ? read() : Promise.reject(new Error('connection refused'));

  const faults: ProviderFaults = {
    wrap: (own) => {
      behind = own;
      return {
        ...own,
        describeToken: (token, merchantId) => question(() => own.describeToken(token, merchantId)),
        laterResults: (about) =>
          question(async () => {
            const results = faults.later.get(about.paymentId);
            return results === undefined ? own.laterResults(about) : { outcome: 'FOUND', results };
          }),
        onNotice: (next) => {
          listener = next;
          own.onNotice?.((paymentId) => {
            if (faults.givesNotice && !faults.later.has(paymentId)) next(paymentId);
          });
        },
        execute: (operation, opened) => execute(own, operation, opened),
        ledger: (...range) => list(() => own.ledger(...range)),
        ledgerEnd: (after) => list(() => own.ledgerEnd(after)),
        lookUp: (about) => {
          const { paymentId } = about;
          faults.lookUps.set(paymentId, (faults.lookUps.get(paymentId) ?? 0) + 1);
          return question(() => own.lookUp(about));
        },
        fence: (about) => question(() => own.fence(about)),
      };
    },
    next: (fault) => void planned.push(fault),
    forget: () => void planned.splice(0),
    holdNext: (then) => {
      const begun = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      const responseLost = then === 'answer lost';
      planned.push({ arrived: begun.resolve, released: released.promise, responseLost });
      return { begun: begun.promise, release: released.resolve };
    },
    hold: async (make, then) => {
      const { begun, release } = faults.holdNext(then);
      const response = make();
      await begun;
      return { response, release };
    },
    away: false,
    listsLedger: true,
    respondsToLookUps: true,
    questions: 0,
    lookUps: new Map(),
    beforeResponse: undefined,
    calls: [],
    later: new Map(),
    givesNotice: true,
    notice: (paymentId) => listener(paymentId),
    arriveLate: async (operation) => void (await behind?.execute(operation, async () => undefined)),
  };
  return faults;
};

export const readModelsFaults = () => {
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  return {
    wrap: (own: ReadModels): ReadModels => ({
      ...own,
      apply: async (...batch) => {
        await gate.promise;
        return own.apply(...batch);
      },
    }),
    /** Nothing is written to the read models any more, until the release. */
    hold: () => {
      gate = Promise.withResolvers<void>();
    },
    release: () => gate.resolve(),
  };
};
