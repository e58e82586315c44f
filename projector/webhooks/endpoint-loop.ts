/**
 * Sends to one endpoint: asks for the next step, carries it out, saves what came of it. The row is
 * saved before the next request goes out: a crash between a request and its save repeats that
 * request, and loses nothing.
 */
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { pause } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { StartTimer } from '../../shared/runtime/timer.ts';
import type { Attempt } from '../../shared/webhooks/delivery-row.ts';
import { isFailing } from '../../shared/webhooks/delivery-row.ts';
import { type Endpoint, liveSecretNumbers } from '../../shared/webhooks/endpoints.ts';
import type { Message } from '../../shared/webhooks/message.ts';
import { isWanted } from '../../shared/webhooks/message-types.ts';
import { endpointKey, signedHeaders } from '../../shared/webhooks/signer.ts';
import type { Log } from '../subscription.ts';
import { followCommands } from './commands.ts';
import {
  accepted,
  type Delivery,
  deliveryOf,
  failed,
  type Item,
  nextStep,
  passed,
  readOn,
  started,
} from './delivery.ts';
import type { LogFeed, Portion } from './log-feed.ts';
import { type Messages, NoMessage } from './messages.ts';
import type { OwnRow } from './own-row.ts';
import type { Permits } from './permits.ts';
import type { Sender, SendOutcome } from './send.ts';

export type LoopDeps = {
  feed: Pick<LogFeed, 'next'>;
  messages: Messages;
  sender: Pick<Sender, 'send'>;
  /** Of all endpoints, and of those that fail. */
  permits: { all: Permits; failing: Permits };
  secret: string;
  logger: Log;
  /** Appends that the endpoint is disabled. */
  disable(endpoint: Endpoint, reason: 'GONE' | 'UNREACHABLE'): Promise<void>;
  onAttempt(attempt: Attempt): void;
  /** Wall clock in milliseconds. */
  nowMs(): number;
  startTimer: StartTimer;
  random(): number;
};

/** What an attempt is recorded under. */
type Named = { id: string; type: string };

export type EndpointLoop = {
  /** The endpoint as its events say now, and all events of its merchant. */
  update(endpoint: Endpoint, events: readonly RecordedEvent[]): void;
  /** For the metrics. */
  status(): { isFailing: boolean; isDisabled: boolean; oldestWaiting: number | null };
  /** Resolves when the loop has ended; rejects where another process has taken the row. */
  ended: Promise<void>;
};

/** How often a checkpoint that passes events of others is saved. */
const SAVE_EVERY_MS = 10_000;
const RETRY_MS = 1_000;
const GONE = 410;

const isSuccess = ({ status }: SendOutcome): boolean =>
  status !== null && status >= 200 && status < 300;

const paymentOfItem = (item: Item) => {
  const { paymentId, revision } = item.kind === 'single' ? item.single : item;
  return { paymentId: paymentId ?? null, revision: paymentId === undefined ? null : revision };
};

const attemptsBefore = (item: Item): number => {
  if (item.kind === 'unread') return 0;
  return item.kind === 'retry' ? item.n : item.single.n;
};

/** Starts the loop over a row that was taken. It ends when `signal` is aborted. */
export const startEndpointLoop = (
  first: Endpoint,
  events: readonly RecordedEvent[],
  row: OwnRow,
  deps: LoopDeps,
  signal: AbortSignal,
): EndpointLoop => {
  const { feed, messages, sender, permits, secret, logger, nowMs, startTimer } = deps;
  let endpoint = first;
  let delivery: Delivery = followCommands(deliveryOf(row.value()), endpoint, events, nowMs());
  let attempts: Attempt[] = [];
  let changed = true;
  let savedAtMs = nowMs();
  /** Raised where the log is read from another place: what is being read is then dropped. */
  let reading: AbortController | undefined;
  let running = 0;
  let wakeUp = Promise.withResolvers<void>();
  let broken: unknown;

  const wake = (): void => {
    const waiting = wakeUp;
    wakeUp = Promise.withResolvers();
    waiting.resolve();
  };
  const set = (next: Delivery): void => {
    delivery = next;
    changed = true;
  };

  const save = async (): Promise<void> => {
    const made = attempts;
    attempts = [];
    changed = false;
    savedAtMs = nowMs();
    try {
      await row.save(delivery.row, made);
    } catch (error) {
      attempts = [...made, ...attempts];
      changed = true;
      throw error;
    }
  };

  const record = (
    item: Item,
    message: Named,
    at: { startedMs: number; latencyMs: number },
    outcome: Pick<SendOutcome, 'status' | 'error'>,
    rest: Pick<Attempt, 'nextAt' | 'outcome'>,
  ): void => {
    const attempt: Attempt = {
      eventId: message.id,
      type: message.type,
      ...paymentOfItem(item),
      attempt: attemptsBefore(item) + 1,
      at: new Date(at.startedMs).toISOString(),
      status: outcome.status,
      error: outcome.error,
      latencyMs: Math.round(at.latencyMs),
      ...rest,
    };
    attempts.push(attempt);
    deps.onAttempt(attempt);
  };

  const giveUp = (item: Item, eventId: string): void => {
    const { endpointId } = endpoint;
    logger.error({ endpointId, eventId, ...paymentOfItem(item) }, 'webhook message given up');
  };

  const requestFor = async (message: Message): Promise<SendOutcome> => {
    const keys = liveSecretNumbers(endpoint, nowMs()).map((number) =>
      endpointKey(secret, endpoint.endpointId, number),
    );
    const { id, body } = message;
    const headers = signedHeaders(keys, id, nowMs(), body);
    const send = () => sender.send(endpoint.url, headers, body, signal);
    const inAll = () => permits.all.with(signal, send);
    return isFailing(delivery.row) ? permits.failing.with(signal, inAll) : inAll();
  };

  const noteFailure = async (
    item: Item,
    message: Named,
    at: { startedMs: number; latencyMs: number },
    outcome: SendOutcome,
    isOurs: boolean,
  ): Promise<void> => {
    const { retryAfterMs } = outcome;
    const was = isFailing(delivery.row);
    const after = failed(delivery, item, nowMs(), { retryAfterMs, isOurs, random: deps.random() });
    set(after.delivery);
    const nextAt = after.nextAt === undefined ? null : new Date(after.nextAt).toISOString();
    record(item, message, at, outcome, {
      nextAt,
      outcome: nextAt === null ? 'GIVEN_UP' : 'RETRYING',
    });
    if (nextAt === null) giveUp(item, message.id);
    const { endpointId } = endpoint;
    if (!was && isFailing(delivery.row)) {
      const { status, error } = outcome;
      logger.warn(
        { endpointId, status, reason: error },
        'webhook endpoint fails: one request at a time',
      );
    }
    if (endpoint.disabled !== undefined) return;
    if (outcome.status === GONE || after.isOver)
      await deps.disable(endpoint, outcome.status === GONE ? 'GONE' : 'UNREACHABLE');
  };

  const sendItem = async (item: Item): Promise<void> => {
    const startedMs = nowMs();
    const began = performance.now();
    const at = () => ({ startedMs, latencyMs: performance.now() - began });
    let message: Message | undefined;
    try {
      message = await messages.of(item, endpoint);
    } catch (error) {
      if (!(error instanceof NoMessage)) throw error;
      const unknown = { id: '', type: 'unreadable' };
      const outcome = { status: null, error: error.code, retryAfterMs: undefined };
      return noteFailure(item, unknown, at(), outcome, true);
    }
    if (message === undefined) return set(passed(delivery, item, nowMs()));
    const outcome = await requestFor(message);
    if (!isSuccess(outcome)) return noteFailure(item, message, at(), outcome, false);
    set(accepted(delivery, item, nowMs()));
    record(item, message, at(), outcome, { nextAt: null, outcome: 'ACCEPTED' });
  };

  const begin = (item: Item): void => {
    delivery = started(delivery, item);
    running += 1;
    sendItem(item)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        if (!(error instanceof StoreUnavailable)) broken = error;
        // The log is out of reach: the item was not sent, and is due again in a moment.
        else set(failed(delivery, item, nowMs(), { isOurs: true, random: deps.random() }).delivery);
      })
      .finally(() => {
        running -= 1;
        wake();
      });
  };

  const take = ({ facts, last, cursor }: Portion): void => {
    const { rescan } = delivery.row;
    const wanted = facts.filter(
      ({ merchantId, type, atMs }) =>
        merchantId === endpoint.merchantId &&
        (type === undefined || isWanted(endpoint, type)) &&
        (rescan === null || atMs >= rescan.before),
    );
    const readTo = last ?? { position: cursor, hash: delivery.readTo.hash };
    const before = delivery.row.checkpoint;
    delivery = readOn(delivery, wanted, readTo);
    // A place that passes events of others alone is saved now and then.
    if (wanted.length > 0 && before !== delivery.row.checkpoint) changed = true;
  };

  const read = async (): Promise<void> => {
    const own = new AbortController();
    reading = own;
    try {
      const upTo = delivery.row.rescan?.upTo ?? null;
      const both = AbortSignal.any([signal, own.signal]);
      const portion = await feed.next(delivery.readTo.position, upTo, both);
      if (own.signal.aborted) return;
      if (portion !== undefined) return take(portion);
      const place = { position: upTo, hash: null };
      set(readOn({ ...delivery, row: { ...delivery.row, rescan: null } }, [], place));
    } catch (error) {
      if (both(signal, own.signal)) return;
      if (!(error instanceof StoreUnavailable)) throw error;
      await pause(RETRY_MS, signal);
    } finally {
      if (reading === own) reading = undefined;
      wake();
    }
  };
  const both = (...signals: AbortSignal[]): boolean => signals.some(({ aborted }) => aborted);

  const waitUntil = async (untilMs: number): Promise<void> => {
    const woken = wakeUp.promise;
    const stop = startTimer(wake, Math.max(0, untilMs - nowMs()));
    signal.addEventListener('abort', wake, { once: true });
    if (!signal.aborted) await woken;
    signal.removeEventListener('abort', wake);
    stop();
  };

  const saveDue = (): boolean =>
    changed ||
    (delivery.row.checkpoint !== row.value().checkpoint && nowMs() - savedAtMs >= SAVE_EVERY_MS);

  /** Carries out what can be done now, and returns until when to wait. */
  const turn = async (): Promise<number> => {
    if (broken !== undefined) throw broken;
    if (saveDue()) await save();
    const isDisabled = endpoint.disabled !== undefined;
    const { send, read: more, untilMs } = nextStep(delivery, nowMs());
    const isTest = send?.kind === 'single' && send.single.kind === 'test';
    if (send !== undefined && (!isDisabled || isTest)) {
      begin(send);
      return nowMs();
    }
    if (more && !isDisabled && reading === undefined)
      void read().catch((error: unknown) => {
        broken = error;
        wake();
      });
    return Math.min(untilMs ?? Number.POSITIVE_INFINITY, nowMs() + SAVE_EVERY_MS);
  };

  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      const woken = wakeUp;
      try {
        const untilMs = await turn();
        if (untilMs > nowMs() && woken === wakeUp) await waitUntil(untilMs);
      } catch (error) {
        if (signal.aborted) break;
        if (!row.isOutOfReach(error)) throw error;
        logger.warn(
          { endpointId: endpoint.endpointId, reason: reasonOf(error) },
          'webhook state not saved: nothing is sent until it can be',
        );
        await pause(RETRY_MS, signal);
      }
    }
    reading?.abort();
    // What ends by itself while the loop stops is saved too: the fewer repeats.
    if (changed && running === 0) await save().catch(() => undefined);
  };

  return {
    update: (next, all) => {
      endpoint = next;
      const before = delivery.readTo.position;
      set(followCommands(delivery, endpoint, all, nowMs()));
      if (delivery.readTo.position !== before) reading?.abort();
      wake();
    },
    status: () => ({
      isFailing: isFailing(delivery.row),
      isDisabled: endpoint.disabled !== undefined,
      oldestWaiting: delivery.row.oldestWaiting,
    }),
    ended: loop(),
  };
};
