/** Verifies the whole log, or one merchant's events in it, for an auditor: a scan (shared/event-store/scan-log.ts). */
import type { Position } from '../shared/event-store/port.ts';
import type { LogScan } from '../shared/event-store/scan-log.ts';
import type { LogProgress } from '../shared/event-store/verify-log.ts';
import { type SealedWalked, walkSealed } from '../shared/event-store/verify-scan.ts';
import type { SealsAgainst } from '../shared/event-store/verify-seals.ts';
import { type KeptHead, type KeptHeadFound, keptHeadCheck } from './kept-head.ts';
import { createMerchantLookup } from './merchants.ts';
import { readModelsOver } from './scan-calls.ts';

/** The address of this module, for who orders the scan. */
export const AUDIT_VERIFY_SCAN = import.meta.url;

/** The log up to `end`; of one merchant `only`, or of all. */
export type AuditVerifyArgs = {
  end: Position | null;
  only: string | undefined;
  logId: string;
  known: KeptHead | undefined;
  seals: SealsAgainst;
};

/** What was verified, and what came of the head that was kept elsewhere. */
export type AuditWalked = SealedWalked & { keptHead: KeptHeadFound | undefined };

/** The verification. Undefined where it was stopped. Throws StoreUnavailable. */
export const scan: LogScan<AuditVerifyArgs, LogProgress, AuditWalked | undefined> =
  async function* ({ stored }, { end, only, logId, known, seals }, { signal, call }) {
    const kept = keptHeadCheck(known, { logId, only });
    const merchants = createMerchantLookup({ stored }, readModelsOver(call));
    const walk = {
      stored,
      guarantee: only === undefined ? stored.guarantee : ('stream' as const),
      ...(only !== undefined && {
        includes: async (form: Parameters<typeof merchants.ofForm>[0]) =>
          (await merchants.ofForm(form)) === only,
      }),
      also: kept.compare,
      atEnd: () => [kept.missing() ?? []].flat(),
      end,
      signal,
    };
    const walked = yield* walkSealed(walk, seals);
    return walked && { ...walked, keptHead: kept.result() };
  };
