/**
 * Finds intents that this process does not know, without reading the whole log (gaps §7): the read models list
 * most, parked payments are read singly, the log after the checkpoint has the rest. Any process may sweep.
 */
import { isReadable } from '../../shared/event-store/codec.ts';
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { type PaymentEvent, paymentOf } from '../../shared/payment/events.ts';
import { isIntent, isLater, isNote, isOfErasure } from '../../shared/payment/transitions.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { jittered, NARROW_JITTER } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { oneRunAtATime } from '../../shared/runtime/scheduling.ts';
import { RETRY_SCHEDULES_MAX } from './retry-schedule.ts';
import type { Unresolved } from './unresolved.ts';

export type SweepOptions = {
  store: Pick<EventStore, 'readAll' | 'end'>;
  readModels: Pick<ReadModels, 'unresolved' | 'parked' | 'checkpoint'>;
  unresolved: Pick<Unresolved, 'track' | 'dropResolved'>;
  logger: Pick<Logger, 'warn'>;
  /** The first sweep waits for it, 2 s at most, so that the log need not be read. */
  ready?: Promise<unknown> | undefined;
};

const EVERY_MS = 60_000;
const AGAIN_MS = 5_000;
const READY_MS_MAX = 2_000;
const PAGE = 500;

const staysToBeDone = (event: PaymentEvent): boolean =>
  event.type !== 'PaymentOutcomeConfirmed' &&
  (isIntent(event) || isNote(event) || 'resolution' in event.data);

const noteOperations = (unresolved: Map<string, Set<string>>, page: readonly LogEvent[]): void => {
  for (const event of page) {
    const paymentId = paymentOf(event.stream);
    if (paymentId === undefined) continue;
    const operations = unresolved.get(paymentId) ?? new Set();
    if (!isReadable(event) || !isOfPayment(event)) operations.add(`revision ${event.revision}`);
    else {
      // Its operation has an outcome already.
      if (isLater(event.event) || isOfErasure(event.event)) continue;
      const { operationId } = event.event.data;
      if (staysToBeDone(event.event)) operations.add(operationId);
      else operations.delete(operationId);
    }
    if (operations.size === 0) unresolved.delete(paymentId);
    else unresolved.set(paymentId, operations);
  }
};

export const startSweep = (options: SweepOptions) => {
  const { store, readModels, unresolved, logger } = options;
  let readTo: Position | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let warnedOf: string | undefined;

  /** What comes after the checkpoint, and was not read before. */
  const readLog = async (checkpoint: Position | null): Promise<Map<string, Set<string>>> => {
    const unresolvedInLog = new Map<string, Set<string>>();
    const isBehind =
      readTo !== undefined && (await store.readAll(checkpoint, 1, readTo)).length > 0;
    let after = isBehind ? (readTo ?? null) : checkpoint;
    const end = await store.end();
    while (after !== end && !stopped) {
      const page = await store.readAll(after, PAGE, end);
      if (page.length === 0) break;
      noteOperations(unresolvedInLog, page);
      after = page.at(-1)?.position ?? after;
      // Requests go first.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (after !== null) readTo = after;
    return unresolvedInLog;
  };

  const sweep = async (): Promise<void> => {
    // First, so that an event applied afterwards shows in the list or in the log.
    const checkpoint = await readModels.checkpoint();
    const listed = await readModels.unresolved(RETRY_SCHEDULES_MAX);
    const parked = await readModels.parked(RETRY_SCHEDULES_MAX);
    const logged = await readLog(checkpoint);
    const merchants = new Map(listed.map(({ paymentId, merchantId }) => [paymentId, merchantId]));
    const open = new Set([...merchants.keys(), ...logged.keys()]);
    const found = new Set(open);
    for (const { paymentId } of parked) found.add(paymentId);
    for (const paymentId of found)
      unresolved.track(paymentId, !open.has(paymentId), merchants.get(paymentId));
    await unresolved.dropResolved(found);
  };

  const now = oneRunAtATime(async (): Promise<void> => {
    clearTimeout(timer);
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
  });

  timer = setTimeout(() => void now(), options.ready === undefined ? 0 : READY_MS_MAX).unref();
  void options.ready?.then(() => {
    if (!stopped) void now();
  });

  return {
    now,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
};

export type Sweep = ReturnType<typeof startSweep>;
