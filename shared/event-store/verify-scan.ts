/** Verifies the whole log with its seals: a scan (scan-log.ts). */
import type { Position } from './port.ts';
import type { LogScan } from './scan-log.ts';
import { type LogProgress, type LogWalk, type LogWalked, walkLog } from './verify-log.ts';
import { type SealsAgainst, type SealsFound, sealsCheck } from './verify-seals.ts';

/** What was verified, and what its seals came to. */
export type SealedWalked = LogWalked & { seals: SealsFound };

/**
 * `walkLog` over a log whose seals are checked on the way. What `also` is for comes after them, and so does
 * `atEnd` after a seal that should have come and did not.
 */
export async function* walkSealed(
  walk: LogWalk,
  against: SealsAgainst,
): AsyncGenerator<LogProgress, SealedWalked | undefined> {
  const seals = sealsCheck(against);
  const walked = yield* walkLog({
    ...walk,
    also: (form) => {
      const inSeals = seals.reasonFor(form);
      const reason = walk.also?.(form);
      return inSeals ?? reason;
    },
    atEnd: () => [seals.missing() ?? [], walk.atEnd?.() ?? []].flat(),
  });
  return walked && { ...walked, seals: seals.found() };
}

/** The address of this module, for who orders the scan. */
export const VERIFY_SCAN = import.meta.url;

/** The whole log up to `end`. */
export type VerifyArgs = { end: Position | null; seals: SealsAgainst };

/** The verification of everything, by the chain that the store keeps. */
export const scan: LogScan<VerifyArgs, LogProgress, SealedWalked | undefined> = (
  { stored },
  { end, seals },
  { signal },
) => walkSealed({ stored, guarantee: stored.guarantee, end, signal }, seals);
