/** The lease only saves work: each write checks revisions and the checkpoint without it (ADR-0038). */
import { setTimeout as delay } from 'node:timers/promises';
import type { ReadModelsWriter } from '../read-models/port.ts';
import type { Logger } from '../runtime/log.ts';

/** As long as the deliverer waits after a holder that was lost: until then its requests may be under way. */
const LOST_MS = 15_000;

/** Renewed, or requested, three times in `ttlMs`. */
export const keepLease = (
  readModels: Pick<ReadModelsWriter, 'lease' | 'release'>,
  logger: Logger,
  ttlMs = 6000,
) => {
  const holder = crypto.randomUUID();
  const everyMs = ttlMs / 3;
  const stopping = new AbortController();
  /** Read from this process's clock; undefined while this projector does not have the lease. */
  let ownUntil: number | undefined;
  let standingBy = false;
  let handedOver = false;
  let takenAtMs = 0;
  let losing = new AbortController();

  const request = async (): Promise<boolean> => {
    const until = performance.now() + ttlMs;
    const taken = await readModels.lease(holder, ttlMs);
    if (ownUntil === undefined) {
      handedOver = taken === 'free';
      takenAtMs = performance.now();
    }
    ownUntil = taken === false ? undefined : until;
    return taken !== false;
  };
  const lose = (reason: string): void => {
    ownUntil = undefined;
    logger.warn({ reason }, 'projector no longer follows the log: lease lost');
    losing.abort();
  };
  const renew = async (): Promise<void> => {
    if (ownUntil === undefined) return;
    try {
      if (!(await request())) lose('another projector has taken over');
    } catch {
      // While the read models are out of reach no other projector can take the lease either.
      if (ownUntil !== undefined && performance.now() > ownUntil)
        lose('the lease could not be renewed');
    }
  };
  let renewing: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    renewing = renew();
  }, everyMs).unref();

  const waitForLease = async (): Promise<void> => {
    while (!(await request())) {
      if (!standingBy) logger.info({}, 'projector stands by: another projector follows the log');
      standingBy = true;
      await delay(everyMs, undefined, { signal: stopping.signal });
    }
  };

  return {
    /** Throws ReadModelsUnavailable, and an AbortError at `stop`. */
    take: async (): Promise<void> => {
      stopping.signal.throwIfAborted();
      losing = new AbortController();
      try {
        await waitForLease();
        if (standingBy) logger.info({}, 'projector takes over: it follows the log now');
      } finally {
        standingBy = false;
      }
    },
    /** Aborts when the lease that was taken last is lost. */
    lost: (): AbortSignal => losing.signal,
    standingBy: (): boolean => standingBy,
    /** The holder before has stopped, and released it: nothing that it began is under way. */
    handedOver: (): boolean => handedOver,
    /** Releases the lease, unless its next holder has to wait for one before. Never throws. */
    stop: async (): Promise<void> => {
      stopping.abort();
      clearInterval(timer);
      // A renewal under way would take the lease again after the release.
      await renewing;
      if (ownUntil === undefined) return;
      ownUntil = undefined;
      if (!handedOver && performance.now() - takenAtMs < LOST_MS) return;
      await readModels.release(holder).catch(() => undefined);
    },
  };
};

export type Lease = ReturnType<typeof keepLease>;
