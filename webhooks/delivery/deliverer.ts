/**
 * Sends each payment event to the endpoints of its merchant, next to the relay, while this process has the
 * projector's lease and a merchant has an endpoint. Its failures delay neither commands nor reads.
 */
import type { EventStore } from '../../shared/event-store/port.ts';
import { WEBHOOK_MERCHANTS_STREAM } from '../../shared/payment/webhook-events.ts';
import { type BackOff, backOffMs, pause } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { type Delivering, type EndpointsStatus, endpointsStatus } from './follow-endpoints.ts';

export type DelivererStatus = EndpointsStatus & {
  state: 'standing-by' | 'idle' | 'running' | 'backing-off' | 'stopped';
  error?: string;
};

const WAITS_MS = {
  /** Between two looks whether this process may run. */
  standBy: 500,
  idle: 1_000,
  /** After another process had the lease: its last requests are over then. */
  takeover: 15_000,
};
const WELL_AFTER_MS = 60_000;

const none = (): EndpointsStatus => endpointsStatus([]);

export type Leader = {
  status(): { state: string };
  /** Whether the process before has ended its requests, and released the lease. */
  handedOver(): boolean;
};
type DelivererOptions = {
  store: Pick<EventStore, 'lastRevision'>;
  begin(secret: string): Promise<Delivering>;
  /** Throws where another secret was used before. */
  secret(): Promise<string>;
  /** The projector, whose lease decides which process delivers. */
  leader: Leader;
  /** Logs a failure, after which they begin again. */
  interrupted(fields: { reason: string; waitMs: number }): void;
  backOff?: BackOff;
  /** Tests shorten them. */
  waitsMs?: Partial<typeof WAITS_MS>;
};

export const startDeliverer = (options: DelivererOptions) => {
  const { store, leader, backOff = { minMs: 100, maxMs: 5_000 } } = options;
  const waitsMs = { ...WAITS_MS, ...options.waitsMs };
  const stopping = new AbortController();
  const { signal } = stopping;
  let state: DelivererStatus['state'] = 'idle';
  let error: string | undefined;
  let counts = none;
  let standingBy = false;
  let failures = 0;
  let loggedReason: string | undefined;

  const isOwnTurn = (): boolean =>
    !signal.aborted && !['standing-by', 'starting', 'stopped'].includes(leader.status().state);

  const waitForTurn = async (): Promise<void> => {
    while (!signal.aborted && !isOwnTurn()) {
      standingBy ||= leader.status().state === 'standing-by';
      state = standingBy ? 'standing-by' : 'idle';
      counts = none;
      await pause(waitsMs.standBy, signal);
    }
    // Requests of a process that was lost may still be on their way.
    if (standingBy && !leader.handedOver()) await pause(waitsMs.takeover, signal);
    standingBy = false;
  };

  const waitForEndpoint = async (): Promise<void> => {
    while (isOwnTurn() && (await store.lastRevision(WEBHOOK_MERCHANTS_STREAM)) === null) {
      state = 'idle';
      await pause(waitsMs.idle, signal);
    }
  };

  /** The lease is lost without an event of the log. */
  const untilTurnEnds = async (over: AbortSignal): Promise<void> => {
    while (isOwnTurn() && !over.aborted) await pause(waitsMs.standBy, over);
  };

  const deliver = async (): Promise<void> => {
    const over = new AbortController();
    const delivering = await options.begin(await options.secret());
    state = 'running';
    counts = delivering.status;
    loggedReason = undefined;
    try {
      const ends = AbortSignal.any([signal, over.signal]);
      await Promise.race([delivering.ended, untilTurnEnds(ends)]);
    } catch (failure) {
      // Events that wait there wait on.
      const last = delivering.status();
      counts = () => last;
      throw failure;
    } finally {
      over.abort();
      await delivering.stop();
    }
  };

  const waitAfter = async (reason: string): Promise<void> => {
    state = 'backing-off';
    error = reason;
    const waitMs = backOffMs(backOff, failures);
    failures += 1;
    if (reason !== loggedReason) options.interrupted({ reason, waitMs });
    loggedReason = reason;
    await pause(waitMs, signal);
    error = undefined;
  };

  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      const beganMs = performance.now();
      try {
        await waitForTurn();
        await waitForEndpoint();
        if (isOwnTurn()) await deliver();
      } catch (failure) {
        if (performance.now() - beganMs > WELL_AFTER_MS) failures = 0;
        if (!signal.aborted) await waitAfter(reasonOf(failure));
      }
    }
    state = 'stopped';
  };
  const ended = loop();

  return {
    status: (): DelivererStatus => ({ state, ...(error !== undefined && { error }), ...counts() }),
    stop: (): Promise<void> => {
      stopping.abort();
      return ended;
    },
  };
};
export type Deliverer = ReturnType<typeof startDeliverer>;
