/** Verifies the hash chain and the sums of one payment, or of the whole log, in the stored forms. */
import { logIdOf } from '../shared/event-store/log-id.ts';
import type { StoredForm, StoredForms } from '../shared/event-store/port.ts';
import { breakOf } from '../shared/event-store/verify-chain.ts';
import { type LogProgress, type LogWalked, walkLog } from '../shared/event-store/verify-log.ts';
import { type SealsFound, sealsCheck } from '../shared/event-store/verify-seals.ts';
import type { AuditVerification } from './contract.ts';
import type { AuditDeps } from './deps.ts';
import type { History } from './history.ts';
import { type KeptHead, type KeptHeadFound, keptHeadCheck } from './kept-head.ts';
import { missingPayments } from './missing-payments.ts';

const headOf = (form: StoredForm | undefined): AuditVerification['head'] => {
  if (form === undefined) return null;
  const { position, stream, revision, hash, logHash } = form;
  return { position, stream, revision, hash, ...(logHash === undefined ? {} : { logHash }) };
};

/** What was found in the chain and the sums of one payment's stream (history.ts). */
export const verifyPayment = (
  paymentId: string,
  { merchantId, forms, broken }: Pick<History, 'merchantId' | 'forms' | 'broken'>,
): AuditVerification => {
  return {
    ok: broken === undefined,
    finding: broken === undefined ? 'INTACT' : 'BROKEN',
    guarantee: 'stream',
    paymentId,
    merchantId,
    events: forms.length,
    head: headOf(forms.at(-1)),
    ...(broken === undefined ? {} : { broken }),
  };
};

/** What to verify of the log. */
export type LogVerification = {
  stored: StoredForms;
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
  broken: LogWalked['broken'],
  kept: KeptHeadFound | undefined,
): AuditVerification['finding'] => {
  if (broken !== undefined) return 'BROKEN';
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
  deps: Pick<AuditDeps, 'store' | 'readModels' | 'merchants' | 'sealingKey' | 'sealedHead'>,
  { stored, only, known, signal }: LogVerification,
): AsyncGenerator<Progress, AuditVerification | undefined> {
  const { store, merchants, sealingKey: publicKey } = deps;
  const guarantee = only === undefined ? stored.guarantee : 'stream';
  const logId = await logIdOf(store);
  const kept = keptHeadCheck(known, { logId, only });
  const sealed = only === undefined ? deps.sealedHead() : undefined;
  const seals = sealsCheck({ log: logId, publicKey, kept: sealed });
  const steps = walkLog({
    stored,
    guarantee,
    ...(only === undefined
      ? {}
      : { includes: async (form) => (await merchants.ofForm(form)) === only }),
    also: (form) => breakOf(form, seals.reasonFor(form)) ?? kept.compare(form),
    end: await store.end(),
    signal,
  });
  let step = await steps.next();
  while (step.done !== true) {
    yield progressOf(step.value);
    step = await steps.next();
  }
  if (step.value === undefined) return undefined;
  const { events, last, broken = seals.missing() ?? kept.missing() } = step.value;
  const found = kept.result();
  const finding = findingOf(broken, found);
  const isBroken = broken !== undefined && only === undefined;
  const missing = isBroken ? await missingPayments(deps, signal) : undefined;
  return {
    ok: finding === 'INTACT',
    finding,
    guarantee: guaranteeOf(guarantee, seals.found()),
    ...(only === undefined ? {} : { merchantId: only }),
    events,
    head: headOf(last),
    ...(broken === undefined ? {} : { broken }),
    ...(missing === undefined ? {} : { missingPayments: missing }),
    ...(found === undefined ? {} : { keptHead: found }),
    ...(only === undefined ? { sealed: seals.found() } : {}),
  };
}
