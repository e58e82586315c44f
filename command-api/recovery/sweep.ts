/**
 * Finds the intents that have no outcome and that this process does not know of, at the start and
 * every minute, without reading the whole log (gaps §7). The read models list them up to their
 * checkpoint; parked payments, whose documents show nothing of them, are read one by one; and the
 * log is read from the checkpoint on, so that none is overlooked while the projector is behind or
 * stopped. Any number of processes may sweep at once.
 */
import { isReadable } from '../../shared/event-store/codec.ts';
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { type PaymentEvent, paymentOf } from '../../shared/payment/payment-events.ts';
import { isIntent, isLater } from '../../shared/payment/transitions.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { jittered, NARROW_JITTER } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { RETRY_SCHEDULES_MAX } from './retry-schedule.ts';
import type { Unresolved } from './unresolved.ts';

export type SweepOptions = {
  store: Pick<EventStore, 'readAll' | 'end'>;
  readModels: Pick<ReadModels, 'unresolved' | 'parked' | 'checkpoint'>;
  unresolved: Pick<Unresolved, 'track' | 'dropResolved'>;
  logger: Pick<Logger, 'warn'>;
  /** What the first sweep may wait for, so that the log need not be read: 2 s at most. */
  ready?: Promise<unknown> | undefined;
};

export type Sweep = {
  /** Resolves when the sweep under way, or the next one, has ended. */
  now(): Promise<void>;
  stop(): void;
};

const EVERY_MS = 60_000;
/** After a sweep that failed: an engine is out of reach. */
const AGAIN_MS = 5_000;
const READY_MS_MAX = 2_000;
const PAGE = 500;

type Events = Awaited<ReturnType<EventStore['readAll']>>;

/** True where recovery has to ask about the operation of the event, as far as the event says. */
const staysToBeDone = (event: PaymentEvent): boolean =>
  isIntent(event) ||
  event.type === 'PaymentProviderOpened' ||
  event.type === 'PaymentResolutionRequested' ||
  event.type === 'PaymentOutcomeContradicted' ||
  (event.type !== 'PaymentOutcomeConfirmed' && 'resolution' in event.data);

/** Notes the operations that a page leaves without an outcome, beside those of the pages before. */
const noteOperations = (unresolved: Map<string, Set<string>>, page: Events): void => {
  for (const event of page) {
    const paymentId = paymentOf(event.stream);
    if (paymentId === undefined) continue;
    const operations = unresolved.get(paymentId) ?? new Set();
    if (!isReadable(event) || !isOfPayment(event)) operations.add(`revision ${event.revision}`);
    else {
      const { data } = event.event;
      // It is said of what has its outcome, and ends nothing.
      if (isLater(event.event)) continue;
      if (staysToBeDone(event.event)) operations.add(data.operationId);
      else operations.delete(data.operationId);
    }
    if (operations.size === 0) unresolved.delete(paymentId);
    else unresolved.set(paymentId, operations);
  }
};

/** Starts sweeping. A sweep that fails is repeated soon; none throws. */
export const startSweep = (options: SweepOptions): Sweep => {
  const { store, readModels, unresolved, logger } = options;
  /** Up to here the log has been read, and what it left unresolved is known. */
  let readTo: Position | undefined;
  let timer: NodeJS.Timeout | undefined;
  let sweeping: Promise<void> | undefined;
  let stopped = false;
  /** Why the last sweep failed: each reason is a line once. */
  let warnedOf: string | undefined;

  /** The later of two places before which everything unresolved is known. */
  const startOf = async (checkpoint: Position | null): Promise<Position | null> => {
    if (readTo === undefined) return checkpoint;
    const between = await store.readAll(checkpoint, 1, readTo);
    return between.length === 0 ? checkpoint : readTo;
  };

  const readLog = async (from: Position | null): Promise<Map<string, Set<string>>> => {
    const unresolvedInLog = new Map<string, Set<string>>();
    // What is appended from here on is for the next sweep.
    const end = await store.end();
    let after = from;
    while (after !== end && !stopped) {
      const page = await store.readAll(after, PAGE, end);
      if (page.length === 0) break;
      noteOperations(unresolvedInLog, page);
      after = page.at(-1)?.position ?? after;
      // Requests that are being served go first.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (after !== null) readTo = after;
    return unresolvedInLog;
  };

  const sweep = async (): Promise<void> => {
    // The checkpoint is read first: an event applied after that shows in the list or in the log.
    const checkpoint = await readModels.checkpoint();
    const listed = await readModels.unresolved(RETRY_SCHEDULES_MAX);
    const parked = await readModels.parked(RETRY_SCHEDULES_MAX);
    const logged = await readLog(await startOf(checkpoint));
    const open = new Set([...listed.map(({ paymentId }) => paymentId), ...logged.keys()]);
    const found = new Set(open);
    for (const { paymentId } of parked) found.add(paymentId);
    for (const paymentId of found) unresolved.track(paymentId, !open.has(paymentId));
    await unresolved.dropResolved(found);
  };

  const sweepOnce = async (): Promise<void> => {
    let nextMs = jittered(EVERY_MS, NARROW_JITTER);
    try {
      await sweep();
      warnedOf = undefined;
    } catch (error) {
      nextMs = Math.min(nextMs, AGAIN_MS);
      const reason = reasonOf(error);
      if (!stopped && reason !== warnedOf)
        logger.warn(
          { err: error },
          'sweep failed: unresolved operations could not be listed; it is tried again until it succeeds',
        );
      warnedOf = reason;
    }
    if (!stopped) timer = setTimeout(() => void now(), nextMs).unref();
  };

  const now = (): Promise<void> => {
    clearTimeout(timer);
    sweeping ??= sweepOnce().finally(() => {
      sweeping = undefined;
    });
    return sweeping;
  };

  const firstMs = options.ready === undefined ? 0 : READY_MS_MAX;
  const first = setTimeout(() => void now(), firstMs).unref();
  void options.ready?.then(() => {
    clearTimeout(first);
    if (!stopped) void now();
  });

  return {
    now,
    stop: () => {
      stopped = true;
      clearTimeout(first);
      clearTimeout(timer);
    },
  };
};
