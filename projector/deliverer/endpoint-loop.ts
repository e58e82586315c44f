/** Delivers to one endpoint. Outcomes are saved together: a crash then repeats a few requests. */
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { pause, type StartTimer } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import {
  type Attempt,
  type DeliveryRow,
  isFailing,
  newDeliveryRow,
  parseDeliveryRow,
} from '../../shared/webhooks/delivery-row.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import type { Endpoint } from '../../shared/webhooks/endpoints.ts';
import { isWanted } from '../../shared/webhooks/message-types.ts';
import { followCommands } from './commands.ts';
import { type Delivery, type Item, isTest, type NextStep, nextStep } from './delivery.ts';
import type { LogFeed, Portion } from './log-feed.ts';
import { failed, readOn, started } from './outcomes.ts';
import { type LoopState, type SendDeps, sendItem, setDelivery } from './send-item.ts';
import type { EndpointStatus } from './status.ts';

/** Another process delivers to the endpoint. */
class Overtaken extends Error {
  override name = 'Overtaken';
}

/** Saves the row once: then older deliverers fail to. `commands`: the revision of the first event. */
export const takeRow = async (
  store: Pick<DeliveryStore, 'load' | 'save'>,
  { endpointId, after }: Endpoint,
  commands: number,
) => {
  const stored = await store.load(endpointId);
  let version = stored?.version ?? 0;
  let row = stored === undefined ? newDeliveryRow(after, commands) : parseDeliveryRow(stored.text);

  /** Throws Overtaken once another deliverer has saved. */
  const save = async (next: DeliveryRow, attempts: readonly Attempt[]): Promise<void> => {
    if (!(await store.save(endpointId, JSON.stringify(next), version, attempts)))
      throw new Overtaken('another process delivers to this endpoint');
    version += 1;
    row = next;
  };

  await save(row, []);
  return { value: () => row, save };
};

type OwnRow = Awaited<ReturnType<typeof takeRow>>;

export type LoopDeps = SendDeps & {
  feed: LogFeed;
  startTimer: StartTimer;
};

export type EndpointLoop = {
  /** `events` are all of the endpoint's merchant. */
  update(endpoint: Endpoint, events: readonly RecordedEvent[]): void;
  status(): EndpointStatus;
  /** Rejects where another process has taken the row. */
  ended: Promise<void>;
};

/** For a checkpoint that only passes events of others. */
const SAVE_EVERY_MS = 10_000;
/** So many attempts, and for so long, wait for their save while others are under way. */
const UNSAVED_MAX = 16;
const UNSAVED_MS = 50;
const RETRY_MS = 1_000;

export const startEndpointLoop = (
  endpoint: Endpoint,
  delivery: Delivery,
  row: OwnRow,
  deps: LoopDeps,
  signal: AbortSignal,
): EndpointLoop => {
  const { feed, logger, nowMs, startTimer } = deps;
  const { endpointId } = endpoint;
  const state: LoopState = {
    endpoint,
    delivery,
    attempts: [],
    changed: true,
    lastHeard: undefined,
  };
  let savedAtMs = Number.NEGATIVE_INFINITY;
  /** Aborted where the log is read from another place. */
  let reading: AbortController | undefined;
  const running = new Set<Promise<void>>();
  let wakeUp = Promise.withResolvers<void>();
  let isInterrupted = false;

  const wake = (): void => {
    wakeUp.resolve();
    wakeUp = Promise.withResolvers();
  };
  signal.addEventListener('abort', wake, { once: true });

  /** A line for the first of several in a row; an engine out of reach has its own. */
  const interrupted = (error: unknown): void => {
    if (isInterrupted || error instanceof StoreUnavailable) return;
    isInterrupted = true;
    const reason = reasonOf(error);
    logger.warn({ endpointId, reason }, 'webhook delivery interrupted: it is tried again');
  };

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
      .then(() => {
        isInterrupted = false;
      })
      .catch((error: unknown) => {
        if (signal.aborted) return;
        interrupted(error);
        const failure = { ours: 'interrupted', random: deps.random() } as const;
        setDelivery(state, failed(state.delivery, item, nowMs(), failure).delivery);
      })
      .finally(() => {
        running.delete(sending);
        wake();
      });
    running.add(sending);
  };

  const take = ({ facts, last, cursor }: Portion): void => {
    const { rescan, checkpoint } = state.delivery.row;
    const wanted = facts.filter(
      ({ merchantId, type, atMs }) =>
        merchantId === state.endpoint.merchantId &&
        (type === undefined || isWanted(state.endpoint, type)) &&
        (rescan === null || atMs >= rescan.before),
    );
    const readTo = last ?? { position: cursor, hash: state.delivery.readTo.hash };
    state.delivery = readOn(state.delivery, wanted, readTo);
    // A checkpoint that only passes events of others is saved now and then.
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
      const there = { ...state.delivery, row: { ...state.delivery.row, rescan: null } };
      setDelivery(state, readOn(there, [], { position: upTo, hash: null }));
    } catch (error) {
      if (leave.aborted) return;
      interrupted(error);
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

  const allowed = ({ send }: NextStep): Item | undefined =>
    state.endpoint.disabled === undefined || (send !== undefined && isTest(send))
      ? send
      : undefined;

  /** Infinite where the row is as it was saved. */
  const saveAtMs = (send: Item | undefined): number => {
    if (state.changed) {
      const isBusy = running.size > 0 || send !== undefined;
      return isBusy && state.attempts.length < UNSAVED_MAX ? savedAtMs + UNSAVED_MS : nowMs();
    }
    const isElsewhere = state.delivery.row.checkpoint !== row.value().checkpoint;
    return isElsewhere ? savedAtMs + SAVE_EVERY_MS : Number.POSITIVE_INFINITY;
  };

  const turn = async (): Promise<number> => {
    const step = nextStep(state.delivery, nowMs());
    const send = allowed(step);
    const saveMs = saveAtMs(send);
    if (saveMs <= nowMs()) {
      await save();
      return nowMs();
    }
    if (send !== undefined) {
      begin(send);
      return nowMs();
    }
    if (step.read && state.endpoint.disabled === undefined && reading === undefined) void read();
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
        if (error instanceof Overtaken) throw error;
        logger.warn(
          { endpointId, reason: reasonOf(error) },
          'webhook state not saved: nothing is sent until it can be',
        );
        await pause(RETRY_MS, signal);
      }
    }
    reading?.abort();
    await Promise.allSettled(running);
    // What ended meanwhile is saved too, so that it is not repeated.
    if (state.changed) await save().catch(() => undefined);
  };

  return {
    update: (next, events) => {
      state.endpoint = next;
      const before = state.delivery.readTo.position;
      setDelivery(state, followCommands(state.delivery, next, events, nowMs()));
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
