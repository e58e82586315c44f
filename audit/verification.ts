/** Verifies the hash chain and the sums of one payment, or of the whole log, in the stored forms. */
import { setImmediate as turn } from 'node:timers/promises';
import { decode } from '../shared/event-store/codec.ts';
import type { Position, StoredForm, StoredForms } from '../shared/event-store/port.ts';
import { breakAt, storedCheck, verifyStream } from '../shared/event-store/verify-chain.ts';
import { sumsBreak, sumsCheck } from '../shared/event-store/verify-sums.ts';
import type { AuditVerification } from './contract.ts';
import type { AuditDeps } from './deps.ts';

/** Small enough that hashing a page delays no other request. */
const PAGE = 250;

const headOf = (form: StoredForm | undefined): AuditVerification['head'] => {
  if (form === undefined) return null;
  const { position, stream, revision, hash, logHash } = form;
  return { position, stream, revision, hash, ...(logHash === undefined ? {} : { logHash }) };
};

/** The first event of a stream whose sum cannot be. The hash of a forged amount can be made right. */
const moneyBreak = (forms: readonly StoredForm[]): AuditVerification['broken'] => {
  const found = sumsBreak(forms.map((form) => decode(form)));
  return found && breakAt(found.event, found.reason);
};

/** The chain and the sums of one payment's stream, from its first event. */
export const verifyPayment = (
  paymentId: string,
  merchantId: string,
  forms: readonly StoredForm[],
): AuditVerification => {
  const broken = verifyStream(forms) ?? moneyBreak(forms);
  return {
    ok: broken === undefined,
    guarantee: 'stream',
    paymentId,
    merchantId,
    events: forms.length,
    head: headOf(forms.at(-1)),
    ...(broken === undefined ? {} : { broken }),
  };
};

/** The head of an earlier export, which the log must still hold. */
export type KnownHead = { position: Position; hash: string };

/** What to verify of the log. */
export type LogVerification = {
  stored: StoredForms;
  /** Only this merchant's streams; undefined: everything. */
  only: string | undefined;
  /** Undefined where the client gave none. */
  known: KnownHead | undefined;
  signal: AbortSignal;
};

/** Events of the log, of every merchant. */
export type Progress = { verified: number; of: number };

const holds = ({ hash, logHash }: StoredForm, known: KnownHead): boolean =>
  known.hash === hash || known.hash === logHash;

const CHANGED = 'its hash is not the one that was exported: the log was rewritten';
const CUT = 'the log does not hold it any more: events were cut off';

/** Looks for the head of an earlier export among the events of the log. */
const knownHeadCheck = (known: KnownHead | undefined) => {
  let found = known === undefined;
  return {
    found: () => found,
    /** The break where the event at the known position has another hash. */
    compare: (form: StoredForm): AuditVerification['broken'] => {
      if (known === undefined || form.position !== known.position) return undefined;
      if (!holds(form, known)) return breakAt(form, CHANGED);
      found = true;
      return undefined;
    },
    /** The break where the log ended before the known position. */
    missing: (): AuditVerification['broken'] => {
      if (found || known === undefined) return undefined;
      return breakAt({ position: known.position, stream: '', revision: 0 }, CUT);
    },
  };
};

/**
 * Verifies what was in the log at the start, page by page. Yields its progress and returns the result,
 * or undefined when `signal` is aborted. Throws StoreUnavailable.
 */
export async function* verifyLogForms(
  { store, merchants }: Pick<AuditDeps, 'store' | 'merchants'>,
  { stored, only, known, signal }: LogVerification,
): AsyncGenerator<Progress, AuditVerification | undefined> {
  const guarantee = only === undefined ? stored.guarantee : 'stream';
  const check = storedCheck(stored, guarantee);
  const sums = sumsCheck(stored);
  const { eventsAfter: of } = await store.head(null);
  let read = 0;
  let verified = 0;
  let last: StoredForm | undefined;
  const knownHead = knownHeadCheck(known);
  const result = (broken?: AuditVerification['broken']): AuditVerification => ({
    ok: broken === undefined,
    guarantee,
    ...(only === undefined ? {} : { merchantId: only }),
    events: verified,
    head: headOf(last),
    ...(broken === undefined ? {} : { broken }),
  });

  let after: Position | null = null;
  while (!signal.aborted) {
    const page: StoredForm[] = await stored.readAll(after, PAGE);
    for (const form of page) {
      if (only !== undefined && (await merchants.ofForm(form)) !== only) continue;
      const reason = (await check(form)) ?? (await sums(decode(form)));
      if (reason !== undefined) return result(breakAt(form, reason));
      const replaced = knownHead.compare(form);
      if (replaced !== undefined) return result(replaced);
      verified += 1;
      last = form;
    }
    read += page.length;
    after = page.at(-1)?.position ?? after;
    yield { verified: read, of: Math.max(of, read) };
    if (page.length < PAGE || (read >= of && knownHead.found())) {
      return result(knownHead.missing());
    }
    await turn();
  }
  return undefined;
}
