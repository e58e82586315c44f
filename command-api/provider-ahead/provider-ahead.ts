/**
 * A provider that holds operations which the event log does not: the log was put back to an older
 * state (gaps §17, ADR-0104). The latest entries of its ledger are compared with the log at start.
 * While it is ahead, merchants can only read; an operator's acknowledgement opens the service.
 *
 * An intent is durable before the provider is called, so what another process has in flight is in the
 * log already.
 */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { EventContext, EventStore } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { backOffMs, pause, within } from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { LedgerEntry, Provider } from '../provider/port.ts';
import { ledgerIdOf } from '../reconcile/differences.ts';
import { readAcknowledgements, recordAcknowledgement } from './acknowledgements.ts';

/** How far the provider is ahead, as far as the last page of its ledger shows. */
export type Ahead = {
  /** How many operations of that page the log does not hold: at least one. */
  operations: number;
  /** Where the ledger ends. */
  cursor: string;
};

/** Why a request that moves money is not served now. */
export type ReadOnly = 'ahead' | 'comparing';

export type ProviderAhead = {
  /** Undefined where the provider is not known to be ahead. */
  now(): Ahead | undefined;
  /** Whether the first comparison still runs: until it ends, nothing that moves money is served. */
  isComparing(): boolean;
  /**
   * Whether this log is known to hold all that the provider carried out: the ledger was compared and
   * nothing was missing, and no operator ever opened the log by an acknowledgement. Elsewhere an
   * operation id under a key may have been sent by the log that was lost (gaps §7, §17).
   */
  isLevel(): boolean;
  /**
   * Undefined where a request that moves money is served. One that comes while the first comparison
   * runs waits for it for a moment; after that one has failed, each has the ledger compared first,
   * for the provider may be back.
   */
  readOnly(): Promise<ReadOnly | undefined>;
  /** Begins to compare; resolves after the first comparison, or when the start can wait no longer. */
  start(): Promise<void>;
  /**
   * Records that an operator opens the service; undefined where nothing had to be opened. Throws
   * what the event store throws, and Error while the ledger cannot be read.
   */
  acknowledge(context: EventContext): Promise<Ahead | undefined>;
  stop(): void;
};

export type ProviderAheadOptions = {
  store: Pick<EventStore, 'append' | 'readStream' | 'lastRevision'>;
  provider: Pick<Provider, 'ledgerEnd'>;
  /** The names of that provider, the one that is stored first. */
  providers: readonly string[];
  logger: Logger;
};

/** The start waits this long for the first comparison: from start to ready takes less than 1 s. */
const START_MS_MAX = 300;
/** A request waits this long for the first comparison, which ends in any case after the other. */
const REQUEST_MS_MAX = 2_000;
/** And this long for a later one: the ledger may be one that cannot be read at all. */
const LATER_REQUEST_MS_MAX = 300;
/** Each request to the provider has a timeout of its own: this ends a comparison that goes on slowly. */
const COMPARISON_MS_MAX = 60_000;
/** Between two comparisons while the ledger cannot be read. */
const AGAIN = { minMs: 500, maxMs: 30_000 };
/** Another process may have been told to open. */
const AHEAD_MS = 1_000;

/** The entries that no event of their payment's stream was stored for. */
const missingInLog = async (
  store: Logged,
  entries: readonly LedgerEntry[],
): Promise<LedgerEntry[]> => {
  const payments = [...Map.groupBy(entries, ({ paymentId }) => paymentId)];
  const missing = await Promise.all(
    payments.map(async ([paymentId, ofPayment]) => {
      const logged = await operationsOf(store, paymentId);
      return ofPayment.filter(({ operationId }) => logged?.has(operationId) === false);
    }),
  );
  return missing.flat();
};

type Logged = Pick<EventStore, 'readStream' | 'lastRevision'>;

/** What a comparison found; `isLevel` as in ProviderAhead. */
type Compared = { ahead: Ahead | undefined; isLevel: boolean };

/**
 * Undefined for a stream that cannot be read, or was deleted: other alarms say so, and the payment is,
 * or was, in this very log.
 */
const operationsOf = async (store: Logged, paymentId: string): Promise<Set<string> | undefined> => {
  try {
    const stream = streamOf(paymentId);
    const events = (await store.readStream(stream)).filter(isOfPayment);
    // Throws for one that was deleted, which reads like one that never was.
    if (events.length === 0) await store.lastRevision(stream);
    return new Set(events.map(({ event }) => ledgerIdOf(event)));
  } catch (error) {
    if (error instanceof UnreadableStream) return undefined;
    throw error;
  }
};

/** Resolves with the work, or when the time is over. */
const inTime = (ms: number, work: Promise<void>): Promise<void> =>
  within(ms, work, () => new Error('late')).catch(() => undefined);

export const createProviderAhead = (options: ProviderAheadOptions): ProviderAhead => {
  const { store, provider, providers, logger } = options;
  const [name] = providers;
  const stopping = new AbortController();
  let ahead: Ahead | undefined;
  let first: Promise<void> | undefined;
  let hasCompared = false;
  let isLevel = false;
  /** Requests that were let pass before the ledger was compared. */
  let passed = 0;
  let running: Promise<boolean> | undefined;
  let resting = new AbortController();

  const compare = async () => {
    const acknowledged = await readAcknowledgements(store, providers);
    const end = await provider.ledgerEnd(acknowledged.cursor);
    const operations = (await missingInLog(store, end)).length;
    const cursor = end.at(-1)?.cursor;
    const ahead = operations === 0 || cursor === undefined ? undefined : { operations, cursor };
    // The entries of requests that passed before may fill the page and hide what is missing.
    const showsEarlier = passed < end.length || cursor === undefined;
    return { acknowledged, ahead, isLevel: acknowledged.cursor === null && showsEarlier };
  };

  const note = ({ ahead: found, isLevel: level }: Compared): void => {
    const before = ahead;
    ahead = found;
    isLevel = level && found === undefined;
    hasCompared = true;
    if (before === undefined && found !== undefined) {
      logger.error(
        found,
        'the provider holds operations that the event log does not: the log is an older copy. Merchants can only read until payments reconcile --acknowledge',
      );
    }
    if (before !== undefined && found === undefined)
      logger.info({}, 'requests that move money are served again');
  };

  const tryToCompare = async (failures: number): Promise<boolean> => {
    const late = () => new Error('the comparison took too long');
    try {
      note(await within(COMPARISON_MS_MAX, compare(), late, stopping.signal));
      return true;
    } catch (error) {
      if (failures === 0 && !stopping.signal.aborted)
        logger.warn(
          { err: error },
          "the provider's ledger could not be compared with the event log; it is tried again",
        );
      return false;
    }
  };

  /** One at a time: who comes while one runs gets what that one finds. */
  const compareOnce = (failures: number): Promise<boolean> => {
    running ??= tryToCompare(failures).finally(() => {
      running = undefined;
    });
    return running;
  };

  const compareForRequest = async (): Promise<void> => {
    if (await compareOnce(1)) resting.abort();
  };

  const compareUntilLevel = async (onFirst: () => void): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted; ) {
      const compared = await compareOnce(failures);
      onFirst();
      if (compared && ahead === undefined) return;
      failures = compared ? 0 : failures + 1;
      resting = new AbortController();
      const over = AbortSignal.any([stopping.signal, resting.signal]);
      await pause(compared ? AHEAD_MS : backOffMs(AGAIN, failures), over);
    }
  };

  return {
    now: () => ahead,
    isComparing: () => first !== undefined,
    isLevel: () => isLevel,
    readOnly: async () => {
      if (first !== undefined) await inTime(REQUEST_MS_MAX, first);
      if (first !== undefined) return 'comparing';
      if (!hasCompared) await inTime(LATER_REQUEST_MS_MAX, compareForRequest());
      if (!hasCompared) passed += 1;
      return ahead === undefined ? undefined : 'ahead';
    },
    start: () => {
      first = new Promise<void>((resolve) => void compareUntilLevel(resolve)).then(() => {
        first = undefined;
      });
      return inTime(START_MS_MAX, first);
    },
    acknowledge: async (context) => {
      const found = await compare();
      if (found.ahead !== undefined)
        await recordAcknowledgement(
          store,
          found.acknowledged,
          { ...found.ahead, ...(name !== undefined && { provider: name }) },
          context,
        );
      note({ ahead: undefined, isLevel: found.isLevel && found.ahead === undefined });
      return found.ahead;
    },
    stop: () => stopping.abort(),
  };
};
