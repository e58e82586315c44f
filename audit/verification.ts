/** Verifies the hash chain and the sums of one payment, or of the whole log, as stored. */
import { breakAt, logIdOf } from '../shared/event-store/chain.ts';
import type { LogJob, Position, StoredForm } from '../shared/event-store/port.ts';
import { scanLog } from '../shared/event-store/scan-log.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { findingOf, judgeBreaks, type LogBreak, type LogBreaks } from './breaks.ts';
import type { AuditVerification } from './contract.ts';
import type { AuditDeps } from './deps.ts';
import type { History } from './history.ts';
import { type Manifest, NOT_GOOD } from './manifest.ts';
import { createMerchantLookup, type MerchantDocuments } from './merchants.ts';
import { type RemovalDeps, type RemovedStreams, removedStreams } from './removed-streams.ts';
import type { SealsAgainst } from './seals/seals.ts';
import { type LogProgress, type LogWalked, walkLog } from './walk-log.ts';

const headOf = (form: StoredForm | undefined): AuditVerification['head'] => {
  if (form === undefined) return null;
  const { position, stream, revision, hash, logHash } = form;
  return { position, stream, revision, hash, logHash };
};

export const verifyPayment = (
  paymentId: string,
  { merchantId, forms, broken }: Pick<History, 'merchantId' | 'forms' | 'broken'>,
): AuditVerification => {
  const kept = broken === undefined ? [] : [broken];
  return {
    ok: broken === undefined,
    finding: findingOf(judgeBreaks({ count: kept.length, kept, acknowledgements: [] })),
    guarantee: 'stream',
    paymentId,
    merchantId,
    events: forms.length,
    head: headOf(forms.at(-1)),
    broken,
  };
};

/** The head of an earlier export; it proves something only about its own log and merchants. */
export type KeptHead = NonNullable<Manifest['head']> & {
  /** The id of the exported log (`logIdOf`). */
  log?: string | undefined;
  /** Undefined for an export of all merchants. */
  merchant?: string | undefined;
  /** Whether the sealing key signed its manifest. */
  signature: 'GOOD' | 'NOT_GOOD' | 'NONE';
};

type Scope = { logId: string; only: string | undefined };
type KeptHeadFound = NonNullable<AuditVerification['keptHead']>;

const CHANGED = 'its hash is not the one that was exported: the log was rewritten';
const CUT = 'the log does not hold it any more: events were cut off';

const notComparable = (kept: KeptHead, { logId, only }: Scope): string | undefined => {
  if (kept.log === undefined) return 'the kept head does not name the log that it is of';
  if (kept.log !== logId) return `the kept head is of another log (${kept.log}, not ${logId})`;
  if (only === undefined || kept.merchant === only) return undefined;
  return kept.merchant === undefined
    ? "the kept head is of all merchants' events, and only one merchant's are verified"
    : "the kept head is of another merchant's events";
};

/** A signature that is not good comes first, and says with it what else does not fit. */
const misfitOf = (kept: KeptHead, scope: Scope): string | undefined => {
  const reason = notComparable(kept, scope);
  if (kept.signature !== 'NOT_GOOD') return reason;
  return reason === undefined ? NOT_GOOD : `${NOT_GOOD}, and ${reason}`;
};

const keptHeadCheck = (kept: KeptHead | undefined, scope: Scope) => {
  const reason = kept === undefined ? undefined : misfitOf(kept, scope);
  const proves = kept !== undefined && reason === undefined;
  let found = false;
  let isMet = false;
  return {
    /** Undefined where the event fits, and for any event but the one at the kept position. */
    reasonFor: (form: StoredForm): string | undefined => {
      if (form.position !== kept?.position) return undefined;
      isMet = true;
      const { stream, revision, hash, logHash = form.logHash } = kept;
      const isSame = hash === form.hash && stream === form.stream && revision === form.revision;
      found = isSame && logHash === form.logHash;
      return found || !proves ? undefined : CHANGED;
    },
    missing: (): LogBreak | undefined =>
      isMet || !proves ? undefined : breakAt({ ...kept, stream: '', revision: 0 }, CUT),
    result: (): KeptHeadFound | undefined => {
      if (kept === undefined) return undefined;
      const { position, signature } = kept;
      const isProven = found && signature !== 'NOT_GOOD';
      return { position, found, signature, ...(!isProven && reason && { notComparable: reason }) };
    },
  };
};

export type VerifiedScope = {
  /** The one merchant whose events are verified; undefined: all. */
  only?: string | undefined;
  known?: KeptHead | undefined;
  /** Looks at each box of the log, after its events. */
  keys?: AuditDeps['verifyKeys'];
  signal: AbortSignal;
};

type AuditVerifyArgs = {
  end: Position | null;
  only: string | undefined;
  logId: string;
  known: KeptHead | undefined;
  seals: SealsAgainst;
};

type AuditWalked = LogWalked & { keptHead: KeptHeadFound | undefined };

/** Undefined where it was stopped. Throws StoreUnavailable. */
export const verifyWithHead: LogJob<
  AuditVerifyArgs,
  LogProgress,
  AuditWalked | undefined,
  MerchantDocuments
> = async function* ({ stored }, { end, only, logId, known, seals }, { signal, calls }) {
  const kept = keptHeadCheck(known, { logId, only });
  const merchants = only !== undefined && createMerchantLookup({ stored }, calls);
  const isOwn = async (form: StoredForm) => merchants && (await merchants.ofForm(form)) === only;
  const includes = merchants ? isOwn : undefined;
  const walked = yield* walkLog({ stored, seals, includes, beside: kept, end, signal });
  return walked && { ...walked, keptHead: kept.result() };
};

type RemovedDeps = Pick<AuditDeps, 'store'> & {
  readModels: RemovalDeps['readModels'] & Pick<ReadModelsReader, 'getAny'>;
};

/** Removed streams, as one merchant or an auditor of all may see them. Throws StoreUnavailable. */
export const removedFor = async (
  deps: RemovedDeps,
  only: string | undefined,
  isBroken: boolean,
  signal: AbortSignal,
): Promise<RemovedStreams> => {
  const isNeeded = deps.store.stored.guarantee !== 'log' || (isBroken && only === undefined);
  if (!isNeeded) return { breaks: [] };
  const removed = await removedStreams(deps, signal);
  if (only === undefined) return removed;
  const merchants = createMerchantLookup(deps.store, deps.readModels);
  const breaks: LogBreak[] = [];
  for (const broken of removed.breaks) {
    const place = { stream: broken.stream, revision: 1, position: '', unreadable: '' };
    if ((await merchants.of(place)) === only) breaks.push(broken);
  }
  return { breaks };
};

type VerifyDeps = RemovedDeps & Pick<AuditDeps, 'sealingKey' | 'keptHeads' | 'noteVerification'>;

/** Verifies the log up to its end at the call; undefined once `signal` aborts. Throws StoreUnavailable. */
export async function* verifyLog(
  deps: VerifyDeps,
  { only, known, keys: verifyKeys, signal }: VerifiedScope,
): AsyncGenerator<LogProgress, AuditVerification | undefined> {
  const { store, sealingKey: publicKey } = deps;
  const isWhole = only === undefined;
  const logId = await logIdOf(store);
  // The file is all merchants'. First, because a stream that it names takes no event from then on.
  const inFile = isWhole ? ((await store.stored.checkFile?.(signal)) ?? []) : [];
  const kept = isWhole ? deps.keptHeads?.() : undefined;
  const seals = { log: logId, publicKey, kept };
  const args: AuditVerifyArgs = { end: await store.end(), only, logId, known, seals };
  const given = { calls: { getAny: deps.readModels.getAny }, signal };
  const walked = yield* scanLog(store, verifyWithHead, args, given);
  if (walked === undefined) return undefined;
  const { events, erased, last, breaks: met, keptHead: found, seals: sealed } = walked;
  const removed = await removedFor(deps, only, judgeBreaks(met, inFile).count > 0, signal);
  // Nothing is known of a look that was broken off.
  if (signal.aborted) return undefined;
  const breaks = judgeBreaks(met, [...removed.breaks, ...inFile]);
  const isComparable = breaks.count > 0 || found?.notComparable === undefined;
  const finding = isComparable ? findingOf(breaks) : 'NOT_COMPARABLE';
  // A break is named first: it may hide a box.
  const keys = verifyKeys && finding !== 'BROKEN' ? await verifyKeys(signal) : undefined;
  if (signal.aborted) return undefined;
  const guarantee = isWhole ? store.stored.guarantee : 'stream';
  const result: AuditVerification = {
    ok: finding === 'INTACT' && !keys?.named.length,
    finding,
    // Where the store keeps no chain over the log, its seals cover it as far as they reach.
    guarantee: guarantee === 'stream' && sealed.seals > 0 ? 'sealed' : guarantee,
    merchantId: only,
    events,
    ...(erased > 0 && { erased }),
    head: headOf(last),
    broken: breaks.named[0],
    breaks,
    missingPayments: removed.missing,
    keptHead: found,
    sealed: isWhole ? sealed : undefined,
    keys,
  };
  // The streams of one merchant prove nothing about the whole log.
  if (isWhole) await tellOf(deps, breaks, result);
  return result;
}

const tellOf = async (
  { noteVerification }: VerifyDeps,
  breaks: LogBreaks,
  { events, keptHead: kept, keys }: AuditVerification,
): Promise<void> => {
  const isComparable = kept !== undefined && kept.notComparable === undefined;
  const isProven = isComparable && kept.signature === 'GOOD';
  // A head whose origin is not proved must not declare the log broken to all (gaps §25).
  if (isComparable && !kept.found && !isProven) return;
  // Only a verification against as late a head clears a difference from one.
  const over = [events, isProven ? Number(kept.position) || 1 : 0];
  await noteVerification?.(breaks, over, keys?.named);
};
