/**
 * Every place where a command, recovery or the projection waits for something, by name, and a way
 * to die there. Each port call is two places: before it, and after it has done its work.
 */
import type { Wrappers } from '../../embedded/compose.ts';
import type { KeyStore } from '../../personal-data/port.ts';
import type { Provider, ProviderOperationKind } from '../../providers/port.ts';
import type { EventStore, NewEvent } from '../../shared/event-store/port.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';

/** The person whose request is the second one (crash-by-hand.ts). */
export const APPROVER = 'john';

export const OPERATIONS = ['authorize', 'sale', 'capture', 'void', 'refund'] as const;
export type Operation = (typeof OPERATIONS)[number] | 'recovery' | 'by hand' | 'erasure';

const CALLS = [
  'append intent',
  'provider',
  'append outcome',
  'read models apply',
  'read models wait',
] as const;
/** Of a create, whose provider opens something before it moves money. */
const OPENING_CALLS = ['append opened', 'confirm'] as const;
const RECOVERY_CALLS = ['look up', 'fence', 'append outcome'] as const;
/** The events of a resolution by hand, in their order. */
const WORD_CALLS = ['append request', 'append word', 'append confirmation'] as const;
const ERASURE_CALLS = ['append erasure', 'erase keys'] as const;
type Call =
  | (typeof CALLS)[number]
  | (typeof OPENING_CALLS)[number]
  | (typeof RECOVERY_CALLS)[number]
  | (typeof WORD_CALLS)[number]
  | (typeof ERASURE_CALLS)[number];

/** For example `capture: after provider`. */
export type CrashPoint = `${Operation}: ${'before' | 'after'} ${Call}`;

const around = (operation: Operation, calls: readonly Call[]): CrashPoint[] =>
  calls.flatMap((call): CrashPoint[] => [
    `${operation}: before ${call}`,
    `${operation}: after ${call}`,
  ]);

/** The whole table: point by operation, no cell empty. */
export const CRASH_POINTS: CrashPoint[] = [
  ...OPERATIONS.flatMap((operation) => around(operation, CALLS)),
  ...around('authorize', OPENING_CALLS),
  ...around('sale', OPENING_CALLS),
  ...around('recovery', RECOVERY_CALLS),
];

/** Two persons end what the provider says nothing of; crash-by-hand.ts takes them. */
export const WORD_CRASH_POINTS: CrashPoint[] = around('by hand', WORD_CALLS);

export const ERASURE_CRASH_POINTS: CrashPoint[] = around('erasure', ERASURE_CALLS);

/** What Stripe does with a request whose process is killed while it waits for the response. */
export const AT_STRIPE = [
  'hangs before acting',
  'hangs after acting',
  // Only once the next process has asked about it.
  'acts late',
] as const;

type EventType = NewEvent['event']['type'];
const INTENTS: Partial<Record<EventType, Operation>> = {
  PaymentCaptureRequested: 'capture',
  PaymentVoidRequested: 'void',
  PaymentRefundRequested: 'refund',
};
const CALLED: Record<ProviderOperationKind, Operation> = {
  AUTHORIZE: 'authorize',
  SALE: 'sale',
  CAPTURE: 'capture',
  VOID: 'void',
  REFUND: 'refund',
};

const WORDS: Partial<Record<EventType, Call>> = {
  PaymentResolutionRequested: 'append request',
  PaymentOutcomeConfirmed: 'append confirmation',
};

const wordOf = ({ event, context }: NewEvent): Call | undefined =>
  WORDS[event.type] ?? (context.actor === APPROVER ? 'append word' : undefined);

const intentOf = ({ event }: NewEvent): Operation | undefined =>
  event.type === 'PaymentCreated'
    ? event.data.captureNow
      ? 'sale'
      : 'authorize'
    : INTENTS[event.type];

/** As `kill -9` from outside: nothing is flushed, closed or answered. */
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
};

/**
 * Stands around every port and dies at one point, once it is armed; the operation is that of the last
 * intent.
 */
export const dyingAt = (
  point: CrashPoint,
  isArmed: () => boolean = () => true,
): Required<Wrappers> & {
  /** Stands around what moves money, behind what opens. */
  confirming(own: Provider): Provider;
} => {
  let current: Operation | undefined;

  const through = async <T>(
    operation: Operation | undefined,
    call: Call,
    work: () => Promise<T>,
  ): Promise<T> => {
    if (point === `${operation}: before ${call}` && isArmed()) return die();
    const result = await work();
    if (point === `${operation}: after ${call}` && isArmed()) return die();
    return result;
  };

  const append =
    (own: EventStore): EventStore['append'] =>
    (stream, expected, events) => {
      const work = () => own.append(stream, expected, events);
      const [first] = events;
      const intent = first && intentOf(first);
      if (intent !== undefined) {
        current = intent;
        return through(intent, 'append intent', work);
      }
      if (first?.event.type === 'PaymentPersonalDataErased')
        return through('erasure', 'append erasure', work);
      if (first?.event.type === 'PaymentProviderOpened')
        return through(current, 'append opened', work);
      const word = first && wordOf(first);
      if (word !== undefined) return through('by hand', word, work);
      const operation = first?.context.actor === 'recovery' ? 'recovery' : current;
      return through(operation, 'append outcome', work);
    };

  return {
    store: (own) => ({ ...own, append: append(own) }),
    provider: (own): Provider => ({
      ...own,
      execute: (operation, opened) =>
        through(CALLED[operation.kind], 'provider', () => own.execute(operation, opened)),
      lookUp: (question) => through('recovery', 'look up', () => own.lookUp(question)),
      fence: (question) => through('recovery', 'fence', () => own.fence(question)),
    }),
    keys: (own): KeyStore => ({
      ...own,
      erase: (ids) => through('erasure', 'erase keys', () => own.erase(ids)),
    }),
    confirming: (own) => ({
      ...own,
      execute: (operation, opened) =>
        through(CALLED[operation.kind], 'confirm', () => own.execute(operation, opened)),
    }),
    readModels: (own): ReadModels => ({
      ...own,
      apply: (...batch) => through(current, 'read models apply', () => own.apply(...batch)),
      waitForRevision: (...wait) =>
        through(current, 'read models wait', () => own.waitForRevision(...wait)),
    }),
  };
};
