/**
 * The provider holds operations that a restored log lacks (gaps §17, ADR-0104). The ledger's end is
 * compared at start; while the provider is ahead merchants can only read, until an operator
 * acknowledges it. Another process's call is in the log already: its intent is durable before.
 */
import { LedgerEndNotFound, type LedgerEntry, type Provider } from '../../../providers/port.ts';
import {
  appendControl,
  type ControlReads,
  type ControlStream,
  readControl,
} from '../../../shared/event-store/control-stream.ts';
import { ControlNotWhole, UnreadableStream } from '../../../shared/event-store/errors.ts';
import { isOfPayment } from '../../../shared/event-store/fold-stream.ts';
import type { EventContext, EventStore } from '../../../shared/event-store/port.ts';
import { PROVIDER_AHEAD_STREAM } from '../../../shared/payment/audit-events.ts';
import { streamOf } from '../../../shared/payment/events.ts';
import { isOtherProvider } from '../../../shared/payment/state.ts';
import { backOffMs, pause, within } from '../../../shared/runtime/back-off.ts';
import { onError } from '../../../shared/runtime/error-text.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import { oneRunAtATime } from '../../../shared/runtime/scheduling.ts';
import { ledgerIdOf } from '../reconcile/differences.ts';

/** No operations: the ledger's end was not found, so there may be any. */
type Ahead = {
  operations: number;
  cursor: string;
};

export type ReadOnly = 'ahead' | 'comparing';

/** The start as a whole takes less than 1 s. */
const START_MS_MAX = 300;
const REQUEST_MS_MAX = 2_000;
/** The ledger may be unreadable for good. */
const LATER_REQUEST_MS_MAX = 300;
const COMPARISON_MS_MAX = 60_000;
const AGAIN = { minMs: 500, maxMs: 30_000 };
const AHEAD_MS = 1_000;
/** How often an acknowledgement is looked for until the ledger, which may be long, is read again. */
const LOOKS_MAX = 30;

type Options = {
  store: ControlReads & Pick<EventStore, 'append'>;
  provider: Pick<Provider, 'ledgerEnd'>;
  providers: readonly string[];
  logger: Logger;
};

const prepare = (options: Options) => ({
  ...options,
  stopping: new AbortController(),
  ahead: undefined as (Ahead & { since: string }) | undefined,
  hasCompared: false,
  isLevel: false,
  /** The acknowledgement that the ledger was last compared after. */
  since: null as string | null,
  /** Requests let pass before the ledger was compared. */
  passed: 0,
});
type Comparing = ReturnType<typeof prepare>;

/** None are known where their stream is not whole: what was acknowledged there is ahead again. */
type Acknowledgements = {
  cursor: string | null;
  stored: ControlStream | ControlNotWhole;
};

type Compared = { acknowledged: Acknowledgements; ahead: Ahead | undefined; isLevel: boolean };

/** Another provider's cursor means nothing here. */
const readAcknowledgements = async ({ store, providers }: Options): Promise<Acknowledgements> => {
  const notWhole = onError(ControlNotWhole, (error) => error);
  const stored = await readControl(store, PROVIDER_AHEAD_STREAM).catch(notWhole);
  if (stored instanceof ControlNotWhole) return { cursor: null, stored };
  const cursors = stored.events.flatMap(({ event }) =>
    event.type === 'ProviderAheadAcknowledged' && !isOtherProvider(event.data.provider, providers)
      ? [event.data.cursor]
      : [],
  );
  return { cursor: cursors.at(-1) ?? null, stored };
};

/** None for an unreadable or deleted stream: other alarms say so. */
const missingOf = async (
  store: Options['store'],
  paymentId: string,
  entries: readonly LedgerEntry[],
): Promise<LedgerEntry[]> => {
  try {
    const stream = streamOf(paymentId);
    const events = (await store.readStream(stream)).filter(isOfPayment);
    // Throws for a deleted stream, which reads like one that never was.
    if (events.length === 0) await store.lastRevision(stream);
    const logged = new Set(events.map(({ event }) => ledgerIdOf(event)));
    return entries.filter(({ operationId }) => !logged.has(operationId));
  } catch (error) {
    if (error instanceof UnreadableStream) return [];
    throw error;
  }
};

const inTime = async (ms: number, work: Promise<unknown>): Promise<void> => {
  await within(ms, work, () => new Error('late')).catch(() => undefined);
};

const compare = async (comparing: Comparing): Promise<Compared> => {
  const { store, provider } = comparing;
  const acknowledged = await readAcknowledgements(comparing);
  comparing.since = acknowledged.cursor;
  const end = await provider
    .ledgerEnd(acknowledged.cursor)
    .catch(onError(LedgerEndNotFound, (error) => error));
  if (end instanceof LedgerEndNotFound)
    return { acknowledged, ahead: { operations: 0, cursor: end.cursor }, isLevel: false };
  const payments = [...Map.groupBy(end, ({ paymentId }) => paymentId)];
  const missing = await Promise.all(payments.map(([id, own]) => missingOf(store, id, own)));
  const operations = missing.flat().length;
  const cursor = end.at(-1)?.cursor;
  if (operations > 0 && cursor !== undefined)
    return { acknowledged, ahead: { operations, cursor }, isLevel: false };
  // Their entries may fill the page and hide what is missing.
  const showsEarlier = comparing.passed < end.length || cursor === undefined;
  const isLevel = acknowledged.cursor === null && showsEarlier;
  return { acknowledged, ahead: undefined, isLevel };
};

const note = (comparing: Comparing, { ahead, isLevel }: Compared): void => {
  const { ahead: before, logger } = comparing;
  const since = before?.since ?? new Date().toISOString();
  comparing.ahead = ahead && { ...ahead, since };
  comparing.isLevel = isLevel;
  comparing.hasCompared = true;
  if (before === undefined && ahead !== undefined)
    logger.error(
      ahead,
      "the provider holds operations that the event log does not, or its ledger's end was not found: the log is an older copy. Merchants can only read until payments reconcile --acknowledge",
    );
  if (before !== undefined && ahead === undefined)
    logger.info({}, 'requests that move money are served again');
};

/** False where the comparison failed. */
const tryToCompare = async (comparing: Comparing, failures: number): Promise<boolean> => {
  const { stopping, logger } = comparing;
  const late = () => new Error('the comparison took too long');
  try {
    note(comparing, await within(COMPARISON_MS_MAX, compare(comparing), late, stopping.signal));
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

const untilAcknowledged = async (comparing: Comparing): Promise<void> => {
  const { signal } = comparing.stopping;
  for (let looks = 0; looks < LOOKS_MAX && !signal.aborted; looks += 1) {
    await pause(AHEAD_MS, signal);
    const found = await readAcknowledgements(comparing).catch(() => undefined);
    if (found !== undefined && found.cursor !== comparing.since) return;
  }
};

const compareUntilLevel = async (
  comparing: Comparing,
  compareOnce: (failures: number) => Promise<boolean>,
): Promise<void> => {
  const { signal } = comparing.stopping;
  for (let failures = 0; !signal.aborted; ) {
    const compared = await compareOnce(failures);
    if (compared && comparing.ahead === undefined) return;
    failures = compared ? 0 : failures + 1;
    if (compared) await untilAcknowledged(comparing);
    else await pause(backOffMs(AGAIN, failures), signal);
  }
};

export const createProviderAhead = (options: Options) => {
  const comparing = prepare(options);
  let first: Promise<void> | undefined;
  const compareOnce = oneRunAtATime((failures: number) => tryToCompare(comparing, failures));

  return {
    now: () => comparing.ahead,
    /** Until the first comparison ends, nothing that moves money is served. */
    isComparing: (): boolean => first !== undefined,
    /** Nothing was missing, and no operator opened the log: no lost log sent an id (gaps §7). */
    isLevel: (): boolean => comparing.isLevel,
    /** Undefined where money may move. Waits a moment for the first comparison, or a later one. */
    readOnly: async (): Promise<ReadOnly | undefined> => {
      if (first !== undefined) await inTime(REQUEST_MS_MAX, first);
      if (first !== undefined) return 'comparing';
      if (!comparing.hasCompared) await inTime(LATER_REQUEST_MS_MAX, compareOnce(1));
      if (!comparing.hasCompared) comparing.passed += 1;
      return comparing.ahead === undefined ? undefined : 'ahead';
    },
    start: (): Promise<void> => {
      void compareUntilLevel(comparing, compareOnce);
      first = compareOnce(0).then(() => {
        first = undefined;
      });
      return inTime(START_MS_MAX, first);
    },
    /** Undefined where nothing had to be opened. Throws Error while the ledger cannot be read. */
    acknowledge: async (context: EventContext): Promise<Ahead | undefined> => {
      const found = await compare(comparing);
      const { ahead, acknowledged } = found;
      const { stored } = acknowledged;
      if (ahead !== undefined) {
        if (stored instanceof ControlNotWhole) throw stored;
        const [provider] = options.providers;
        const data = { ...ahead, ...(provider !== undefined && { provider }) };
        const event = { type: 'ProviderAheadAcknowledged', data } as const;
        await appendControl(options.store, PROVIDER_AHEAD_STREAM, stored, [event], context);
      }
      note(comparing, { ...found, ahead: undefined });
      return ahead;
    },
    stop: (): void => comparing.stopping.abort(),
  };
};

export type ProviderAhead = ReturnType<typeof createProviderAhead>;
