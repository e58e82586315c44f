/** Verifies the hash chain and the sums of one payment, or of the whole log, in the stored forms. */
import { judgeBreaks, type LogBreaks } from '../shared/event-store/breaks.ts';
import { logIdOf } from '../shared/event-store/log-id.ts';
import type { StoredForm, StoredForms } from '../shared/event-store/port.ts';
import { scanLog } from '../shared/event-store/scan-log.ts';
import type { LogProgress } from '../shared/event-store/verify-log.ts';
import type { SealsFound } from '../shared/event-store/verify-seals.ts';
import type { AuditVerification } from './contract.ts';
import type { AuditDeps } from './deps.ts';
import type { History } from './history.ts';
import type { KeptHead, KeptHeadFound } from './kept-head.ts';
import { removedFor } from './removed.ts';
import { scanCalls } from './scan-calls.ts';
import { AUDIT_VERIFY_SCAN, type AuditVerifyArgs, type AuditWalked } from './verify-scan.ts';

const headOf = (form: StoredForm | undefined): AuditVerification['head'] => {
  if (form === undefined) return null;
  const { position, stream, revision, hash, logHash } = form;
  return { position, stream, revision, hash, logHash };
};

/** What was found in the chain and the sums of one payment's stream (history.ts). */
export const verifyPayment = (
  paymentId: string,
  { merchantId, forms, broken }: Pick<History, 'merchantId' | 'forms' | 'broken'>,
): AuditVerification => ({
  ok: broken === undefined,
  finding: broken === undefined ? 'INTACT' : 'BROKEN',
  guarantee: 'stream',
  paymentId,
  merchantId,
  events: forms.length,
  head: headOf(forms.at(-1)),
  broken,
});

/** What to verify of the log. */
export type LogVerification = {
  /** Only this merchant's streams; undefined: everything. */
  only: string | undefined;
  /** Undefined where the client gave none. */
  known: KeptHead | undefined;
  signal: AbortSignal;
};

/** Events of the log, of every merchant; `estimated` where there are about `of`. */
export type Progress = { verified: number; of: number; estimated: boolean };

const progressOf = ({ read, total, isExact }: LogProgress): Progress => ({
  verified: read,
  of: total,
  estimated: !isExact,
});

const findingOf = (
  { count }: LogBreaks,
  kept: KeptHeadFound | undefined,
): AuditVerification['finding'] => {
  if (count > 0) return 'BROKEN';
  return kept?.notComparable === undefined ? 'INTACT' : 'NOT_COMPARABLE';
};

/** Where the store keeps no chain over the log, its seals cover the log as far as they reach. */
const guaranteeOf = (
  guarantee: StoredForms['guarantee'],
  { seals }: SealsFound,
): AuditVerification['guarantee'] => (guarantee === 'stream' && seals > 0 ? 'sealed' : guarantee);

/**
 * Verifies what was in the log at the start, page by page. Yields its progress and returns the result,
 * or undefined when `signal` is aborted. Throws StoreUnavailable.
 */
export async function* verifyLogForms(
  deps: Pick<AuditDeps, 'store' | 'readModels' | 'merchants' | 'sealingKey' | 'keptHeads'>,
  { only, known, signal }: LogVerification,
): AsyncGenerator<Progress, AuditVerification | undefined> {
  const { store, sealingKey: publicKey } = deps;
  const guarantee = only === undefined ? store.stored.guarantee : 'stream';
  const logId = await logIdOf(store);
  const kept = only === undefined ? deps.keptHeads() : undefined;
  const seals = { log: logId, publicKey, kept };
  const args: AuditVerifyArgs = { end: await store.end(), only, logId, known, seals };
  const order = { module: AUDIT_VERIFY_SCAN, args, calls: scanCalls(deps), signal };
  const steps = scanLog<LogProgress, AuditWalked | undefined>(store, order);
  let step = await steps.next();
  while (step.done !== true) {
    yield progressOf(step.value);
    step = await steps.next();
  }
  if (step.value === undefined) return undefined;
  const { events, last, broken, breaks: met, keptHead: found, seals: sealed } = step.value;
  const removed = await removedFor(deps, only, broken !== undefined, signal);
  // Of a look that was broken off nothing is known.
  if (signal.aborted) return undefined;
  const breaks = judgeBreaks(met, removed.breaks);
  const finding = findingOf(breaks, found);
  return {
    ok: finding === 'INTACT',
    finding,
    guarantee: guaranteeOf(guarantee, sealed),
    merchantId: only,
    events,
    head: headOf(last),
    broken: breaks.named[0],
    breaks,
    missingPayments: removed.missing,
    keptHead: found,
    sealed: only === undefined ? sealed : undefined,
  };
}
