/**
 * Seals the head of the log: after `eventsMax` events, after `everyMs` where anything was written, and
 * at the stop. A seal is an event of its own stream, in the log's own file; it covers what lies before
 * it. No append waits for a seal, and a seal that cannot be stored is tried again at the next look.
 */
import type { KeyObject } from 'node:crypto';
import type { EventStore } from '../../shared/event-store/port.ts';
import { makeSeal, type SealedHead } from '../../shared/event-store/seals.ts';
import { within } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { appendSeal } from './append.ts';
import type { SealSource } from './source.ts';

/** Between two looks at how much is not sealed. */
const LOOK_MS = 1_000;
/** A stop waits no longer for its seal: what it leaves out is sealed after the next start. */
const STOP_MS_MAX = 2_000;

export type SealerOptions = {
  store: Pick<EventStore, 'append'>;
  source: SealSource;
  privateKey: KeyObject;
  eventsMax: number;
  /** The `eventsMax` that a seal names; undefined where the log may grow while nobody seals (ADR-0156). */
  promised: number | undefined;
  everyMs: number;
  /** Keeps the sealed head outside the log. */
  keep(head: SealedHead): Promise<void>;
  logger: Logger;
};

export type Sealer = {
  /** The last seal of the log, or change of the key, that is known here. */
  last: SealSource['last'];
  /** Seals what is not sealed yet. Throws what `append` and `keep` throw. */
  seal(): Promise<void>;
  /** Seals once more, unless that takes too long. Never throws. */
  stop(): Promise<void>;
};

/** Starts looking. */
export const startSealer = (options: SealerOptions): Sealer => {
  const { store, source, privateKey, eventsMax, promised, everyMs, keep, logger } = options;
  let sealedAtMs = performance.now();
  let sealing: Promise<void> = Promise.resolve();
  let reported = false;

  const append = async (): Promise<void> => {
    const found = await source.head();
    if (found === undefined) return;
    const data = makeSeal(privateKey, { ...found.head, eventsMax: promised });
    const seal = await appendSeal(store, source.last(), { type: 'LogSealed', data }, 'sealer');
    source.sealed(seal, found.unsealed);
    sealedAtMs = performance.now();
    await keep(found.head);
  };

  const seal = (): Promise<void> => {
    const sealed = sealing.then(async () => {
      if ((await source.unsealed()) > 0) await append();
    });
    sealing = sealed.catch(() => undefined);
    return sealed;
  };

  const isDue = async (): Promise<boolean> => {
    const events = await source.unsealed();
    const last = source.last();
    // A verification takes the next seal for due after what the last one says, so a change is sealed.
    const isChanged = last !== undefined && last.event.data.eventsMax !== promised;
    const isLate = isChanged || performance.now() - sealedAtMs >= everyMs;
    return events >= eventsMax || (events > 0 && isLate);
  };

  const look = async (): Promise<void> => {
    try {
      if (await isDue()) await seal();
      reported = false;
    } catch (error) {
      if (!reported) logger.warn({ reason: reasonOf(error) }, 'the event log could not be sealed');
      reported = true;
    }
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  timer.unref();

  return {
    last: source.last,
    seal,
    stop: async () => {
      clearInterval(timer);
      const late = (): Error => new Error('it takes too long');
      await within(STOP_MS_MAX, seal(), late).catch((error: unknown) =>
        logger.warn({ reason: reasonOf(error) }, 'the event log was not sealed at the stop'),
      );
    },
  };
};
