/**
 * One of several projectors follows the log, the others stand by. The lease spares them each
 * other's work and nothing more: what is written is compared and set whoever has it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ReadModelsWriter } from '../shared/read-models/port.ts';
import type { Log } from './subscription.ts';

export type LeaseOptions = {
  readModels: Pick<ReadModelsWriter, 'lease' | 'release'>;
  logger: Log;
  /** How long another projector waits for one that fell silent; a third of it lies between asks. */
  ttlMs?: number;
  /** It was held, and is not any more. */
  onLost(): void;
};

export type Lease = {
  /** Resolves when the lease is ours. Throws ReadModelsUnavailable, and an AbortError at `stop`. */
  take(): Promise<void>;
  /** True while another projector has it and this one waits. */
  standingBy(): boolean;
  /** Stops asking, and lets go. Never throws. */
  stop(): Promise<void>;
};

export const keepLease = ({ readModels, logger, ttlMs = 6000, onLost }: LeaseOptions): Lease => {
  const holder = crypto.randomUUID();
  const everyMs = ttlMs / 3;
  const stopping = new AbortController();
  /** Until when it is ours, by this process's clock; undefined while it is not. */
  let heldUntil: number | undefined;
  let standingBy = false;

  const ask = async (): Promise<boolean> => {
    const until = performance.now() + ttlMs;
    const taken = await readModels.lease(holder, ttlMs);
    heldUntil = taken ? until : undefined;
    // seeded bug: one-projector
    return taken;
  };
  const lose = (reason: string): void => {
    heldUntil = undefined;
    logger.warn({ reason }, 'this projector no longer follows the log');
    onLost();
  };
  const renew = async (): Promise<void> => {
    if (heldUntil === undefined) return;
    try {
      if (!(await ask())) lose('another projector has taken over');
    } catch {
      // While the read models are out of reach nobody else can take it either: see it through.
      if (heldUntil !== undefined && performance.now() > heldUntil) lose('it could not be renewed');
    }
  };
  let renewing: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    renewing = renew();
  }, everyMs).unref();

  const waitForIt = async (): Promise<void> => {
    while (!(await ask())) {
      if (!standingBy) logger.info({}, 'another projector follows the log, this one stands by');
      standingBy = true;
      await delay(everyMs, undefined, { signal: stopping.signal });
    }
  };

  return {
    take: async () => {
      stopping.signal.throwIfAborted();
      try {
        await waitForIt();
        if (standingBy) logger.info({}, 'this projector takes over');
      } finally {
        standingBy = false;
      }
    },
    standingBy: () => standingBy,
    stop: async () => {
      stopping.abort();
      clearInterval(timer);
      // A renewal under way would take again what is let go.
      await renewing;
      if (heldUntil === undefined) return;
      heldUntil = undefined;
      await readModels.release(holder).catch(() => undefined);
    },
  };
};
