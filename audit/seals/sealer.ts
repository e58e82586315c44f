/**
 * Seals the head of the log: after `eventsMax` events, after `everyMs` where anything was written, and at the
 * stop. No append waits for it; failures are tried again. While anything is written, a signed head is kept
 * outside the log once a second, so events without a seal cannot be written anew either.
 */
import type { KeyObject } from 'node:crypto';
import { within } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { oneAfterAnother, oneRunAtATime } from '../../shared/runtime/scheduling.ts';
import { type HeadFile, makeSeal, signHead } from './seals.ts';
import { appendSeal, type SealSource } from './stored-seals.ts';

const LOOK_MS = 1_000;
const NOT_KEPT = 'the head of the event log could not be kept outside the log';
/** Events that a stop does not seal in time are sealed after the next start. */
const STOP_MS_MAX = 2_000;

type SealerOptions = {
  store: Parameters<typeof appendSeal>[0];
  source: SealSource;
  privateKey: KeyObject;
  eventsMax: number;
  /** In the seal; undefined where the log may grow without a sealer (ADR-0033). */
  promised: number | undefined;
  everyMs: number;
  keep?: ((heads: HeadFile) => Promise<void>) | undefined;
  logger: Logger;
};

const secondsSince = (ms: number): number => (performance.now() - ms) / 1000;

/** Keeps heads outside the log; `unkeptSeconds` counts while that fails. */
const createHeadKeeper = (keep: SealerOptions['keep'], logger: Logger) => {
  let keptPosition: string | undefined;
  let unkeptSinceMs: number | undefined;
  return {
    keep: async (heads: HeadFile): Promise<void> => {
      try {
        await keep?.(heads);
        keptPosition = heads.last?.position;
        unkeptSinceMs = undefined;
      } catch (error) {
        if (unkeptSinceMs === undefined) logger.warn({ reason: reasonOf(error) }, NOT_KEPT);
        unkeptSinceMs ??= performance.now();
      }
    },
    position: () => keptPosition,
    unkeptSeconds: (): number => (unkeptSinceMs === undefined ? 0 : secondsSince(unkeptSinceMs)),
  };
};

export const startSealer = (options: SealerOptions) => {
  const { store, source, privateKey, eventsMax, promised, everyMs, keep, logger } = options;
  let sealedAtMs = performance.now();
  /** Both kinds of work write the file next to the key. */
  const inTurn = oneAfterAnother();
  let reported = false;
  const kept = createHeadKeeper(keep, logger);

  const append = async (): Promise<void> => {
    const found = await source.head();
    if (found === undefined) return;
    const data = makeSeal(privateKey, { ...found.head, eventsMax: promised });
    const seal = await appendSeal(store, source.last(), { type: 'LogSealed', data }, 'sealer');
    source.sealed(seal, found.unsealed);
    sealedAtMs = performance.now();
    await kept.keep({ sealed: found.head });
  };

  const keepLast = async (): Promise<void> => {
    if (keep === undefined || (await source.unsealed()) === 0) return;
    const found = await source.head();
    if (found === undefined || found.head.position === kept.position()) return;
    const last = signHead(privateKey, found.head);
    const data = source.last()?.event.data;
    const sealed = data && { log: data.log, position: data.position, logHash: data.logHash };
    await kept.keep({ sealed, last });
  };

  const seal = (): Promise<void> =>
    inTurn(async () => {
      if ((await source.unsealed()) > 0) await append();
    });

  const isDue = async (): Promise<boolean> => {
    const events = await source.unsealed();
    const last = source.last();
    // A verification expects the next seal after what the last one says.
    const isChanged = last !== undefined && last.event.data.eventsMax !== promised;
    const isLate = isChanged || performance.now() - sealedAtMs >= everyMs;
    return events >= eventsMax || (events > 0 && isLate);
  };

  const look = oneRunAtATime(async (): Promise<void> => {
    try {
      if (await isDue()) await seal();
      await inTurn(keepLast);
      reported = false;
    } catch (error) {
      if (!reported) logger.warn({ reason: reasonOf(error) }, 'the event log could not be sealed');
      reported = true;
    }
  });
  const timer = setInterval(() => void look(), LOOK_MS);
  timer.unref();

  return {
    last: source.last,
    seal,
    /** `sealSeconds`: since the last seal, while events wait for the next; `headSeconds`: since a head was kept, while none can be. */
    overdue: async () => ({
      sealSeconds: (await source.unsealed()) > 0 ? secondsSince(sealedAtMs) : 0,
      headSeconds: kept.unkeptSeconds(),
    }),
    /** Seals once more, unless that takes too long. Never throws. */
    stop: async (): Promise<void> => {
      clearInterval(timer);
      const late = (): Error => new Error('it takes too long');
      await within(STOP_MS_MAX, seal(), late).catch((error: unknown) =>
        logger.warn({ reason: reasonOf(error) }, 'the event log was not sealed at the stop'),
      );
    },
  };
};
export type Sealer = ReturnType<typeof startSealer>;
