/**
 * Delivers to one endpoint: asks for the next step, carries it out, saves what came of it. Outcomes
 * that come together are saved together, so a crash repeats a few requests, and loses nothing.
 */
import type { KeyObject } from 'node:crypto';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { pause } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { StartTimer } from '../../shared/runtime/timer.ts';
import { isFailing } from '../../shared/webhooks/delivery-row.ts';
import type { Endpoint } from '../../shared/webhooks/endpoints.ts';
import { isWanted } from '../../shared/webhooks/message-types.ts';
import { endpointKey, forMany } from '../../shared/webhooks/signer.ts';
import { followCommands } from './commands.ts';
import { deliveryOf, type Item, isTest, type NextStep, nextStep } from './delivery.ts';
import type { LogFeed, Portion } from './log-feed.ts';
import { failed, readOn, started } from './outcomes.ts';
import type { OwnRow } from './own-row.ts';
import { type LoopState, type SendDeps, sendItem, setDelivery } from './send-item.ts';

export type LoopDeps = SendDeps & {
  feed: Pick<LogFeed, 'next'>;
  secret: string;
  startTimer: StartTimer;
};

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
/** So many attempts, and for so long, wait for their save while others are under way. */
const UNSAVED_MAX = 16;
const UNSAVED_MS = 50;
const RETRY_MS = 1_000;

/** Signing keys of an endpoint by their number: each is derived once. */
const keysOf = (secret: string, endpointId: string): LoopState['keyOf'] => {
  const keys = new Map<number, KeyObject>();
  return (number) => {
    const key = keys.get(number) ?? forMany(endpointKey(secret, endpointId, number));
    keys.set(number, key);
    return key;
  };
};

/** Starts the loop over a row that was taken. It ends when `signal` is aborted. */
export const startEndpointLoop = (
  first: Endpoint,
  events: readonly RecordedEvent[],
  row: OwnRow,
  deps: LoopDeps,
  signal: AbortSignal,
): EndpointLoop => {
  const { feed, logger, nowMs, startTimer } = deps;
  const state: LoopState = {
    endpoint: first,
    delivery: followCommands(deliveryOf(row.value()), first, events, nowMs()),
    attempts: [],
    changed: true,
    lastHeard: undefined,
    keyOf: keysOf(deps.secret, first.endpointId),
  };
  let savedAtMs = Number.NEGATIVE_INFINITY;
  /** Raised where the log is read from another place: what is being read is then dropped. */
  let reading: AbortController | undefined;
  const running = new Set<Promise<void>>();
  let wakeUp = Promise.withResolvers<void>();
  let broken: unknown;

  const wake = (): void => {
    const waiting = wakeUp;
    wakeUp = Promise.withResolvers();
    waiting.resolve();
  };
  signal.addEventListener('abort', wake, { once: true });

  const save = async (): Promise<void> => {
    const made = state.attempts;
    state.attempts = [];
    state.changed = false;
    savedAtMs = nowMs();
    try {
      await row.save(state.delivery.row, made);
    } catch (error) {
      state.attempts = [...made, ...state.attempts];
      state.changed = true;
      savedAtMs = Number.NEGATIVE_INFINITY;
      throw error;
    }
  };

  const begin = (item: Item): void => {
    state.delivery = started(state.delivery, item);
    const sending = sendItem(state, item, deps, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        if (!(error instanceof StoreUnavailable)) broken = error;
        // The log is out of reach: the item was not sent, and is due again in a moment.
        else {
          const failure = { ours: 'store out of reach', random: deps.random() } as const;
          setDelivery(state, failed(state.delivery, item, nowMs(), failure).delivery);
        }
      })
      .finally(() => {
        running.delete(sending);
        wake();
      });
    running.add(sending);
  };

  const take = ({ facts, last, cursor }: Portion): void => {
    const { endpoint, delivery } = state;
    const { rescan, checkpoint } = delivery.row;
    const wanted = facts.filter(
      ({ merchantId, type, atMs }) =>
        merchantId === endpoint.merchantId &&
        (type === undefined || isWanted(endpoint, type)) &&
        (rescan === null || atMs >= rescan.before),
    );
    const readTo = last ?? { position: cursor, hash: delivery.readTo.hash };
    state.delivery = readOn(delivery, wanted, readTo);
    // A place that passes events of others alone is saved now and then.
    if (wanted.length > 0 && checkpoint !== state.delivery.row.checkpoint) state.changed = true;
  };

  const read = async (): Promise<void> => {
    const own = new AbortController();
    reading = own;
    const leave = AbortSignal.any([signal, own.signal]);
    try {
      const { readTo, row: before } = state.delivery;
      const upTo = before.rescan?.upTo ?? null;
      const portion = await feed.next(state.endpoint.merchantId, readTo.position, upTo, leave);
      if (own.signal.aborted) return;
      if (portion !== undefined) return take(portion);
      const { delivery } = state;
      const there = { ...delivery, row: { ...delivery.row, rescan: null } };
      setDelivery(state, readOn(there, [], { position: upTo, hash: null }));
    } catch (error) {
      if (leave.aborted) return;
      if (!(error instanceof StoreUnavailable)) throw error;
      await pause(RETRY_MS, signal);
    } finally {
      if (reading === own) reading = undefined;
      wake();
    }
  };

  const waitUntil = async (untilMs: number): Promise<void> => {
    const woken = wakeUp.promise;
    const stop = startTimer(wake, Math.max(0, untilMs - nowMs()));
    if (!signal.aborted) await woken;
    stop();
  };

  /** What is to be sent now, as far as the endpoint may be sent anything. */
  const allowed = ({ send }: NextStep): Item | undefined => {
    const { disabled } = state.endpoint;
    return disabled === undefined || (send !== undefined && isTest(send)) ? send : undefined;
  };

  /** When the row has to be saved; undefined where it is as it was saved. */
  const saveAtMs = (send: Item | undefined): number | undefined => {
    const { changed, attempts, delivery } = state;
    if (changed) {
      const isBusy = running.size > 0 || send !== undefined;
      return isBusy && attempts.length < UNSAVED_MAX ? savedAtMs + UNSAVED_MS : nowMs();
    }
    const isElsewhere = delivery.row.checkpoint !== row.value().checkpoint;
    return isElsewhere ? savedAtMs + SAVE_EVERY_MS : undefined;
  };

  /** Carries out what can be done now, and returns until when to wait. */
  const turn = async (): Promise<number> => {
    if (broken !== undefined) throw broken;
    const step = nextStep(state.delivery, nowMs());
    const send = allowed(step);
    const saveMs = saveAtMs(send) ?? Number.POSITIVE_INFINITY;
    if (saveMs <= nowMs()) {
      await save();
      return nowMs();
    }
    if (send !== undefined) {
      begin(send);
      return nowMs();
    }
    if (step.read && state.endpoint.disabled === undefined && reading === undefined)
      void read().catch((error: unknown) => {
        broken = error;
        wake();
      });
    return Math.min(step.untilMs ?? Number.POSITIVE_INFINITY, saveMs, nowMs() + SAVE_EVERY_MS);
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
          { endpointId: state.endpoint.endpointId, reason: reasonOf(error) },
          'webhook state not saved: nothing is sent until it can be',
        );
        await pause(RETRY_MS, signal);
      }
    }
    reading?.abort();
    await Promise.allSettled(running);
    // What ended while the loop stopped is saved too: the fewer repeats.
    if (state.changed) await save().catch(() => undefined);
  };

  return {
    update: (next, all) => {
      state.endpoint = next;
      const before = state.delivery.readTo.position;
      setDelivery(state, followCommands(state.delivery, next, all, nowMs()));
      if (state.delivery.readTo.position !== before) reading?.abort();
      wake();
    },
    status: () => ({
      isFailing: isFailing(state.delivery.row),
      isDisabled: state.endpoint.disabled !== undefined,
      oldestWaiting: state.delivery.row.oldestWaiting,
    }),
    ended: loop(),
  };
};
