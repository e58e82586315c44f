/** Proof on demand: one payment's chain, or every event of the log, from what is stored. */
import { setImmediate as turn } from 'node:timers/promises';
import type { Position, StoredForm, StoredForms } from '../shared/event-store/port.ts';
import { breakAt, storedCheck, verifyStream } from '../shared/event-store/verify-chain.ts';
import type { AuditVerification } from './contract.ts';
import type { AuditDeps } from './deps.ts';

/** Small enough that a page's hashes hold up no other request. */
const PAGE = 250;

const headOf = (form: StoredForm | undefined): AuditVerification['head'] => {
  if (form === undefined) return null;
  const { position, stream, revision, hash, logHash } = form;
  return { position, stream, revision, hash, ...(logHash === undefined ? {} : { logHash }) };
};

/** The chain of one payment's stream, from its first event. */
export const verifyPayment = (
  paymentId: string,
  merchantId: string,
  forms: readonly StoredForm[],
): AuditVerification => {
  const broken = verifyStream(forms);
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

export type LogVerification = {
  stored: StoredForms;
  /** Only this merchant's streams; undefined: everything. */
  only: string | undefined;
  known: KnownHead | undefined;
  signal: AbortSignal;
};

export type Progress = { verified: number; of: number };

const holds = ({ hash, logHash }: StoredForm, known: KnownHead): boolean =>
  known.hash === hash || known.hash === logHash;

const CHANGED = 'its hash is not the one that was exported: the log was rewritten';
const CUT = 'the log does not hold it any more: events were cut off';

/**
 * Verifies what was in the log at the start, page by page; hands out progress and ends with the
 * result, or without one when `signal` is aborted.
 */
export async function* verifyLogForms(
  { store, merchants }: Pick<AuditDeps, 'store' | 'merchants'>,
  { stored, only, known, signal }: LogVerification,
): AsyncGenerator<Progress, AuditVerification | undefined> {
  const guarantee = only === undefined ? stored.guarantee : 'stream';
  const check = storedCheck(stored, guarantee);
  const { eventsAfter: of } = await store.head(null);
  let read = 0;
  let verified = 0;
  let last: StoredForm | undefined;
  let heldKnown = known === undefined;
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
      const reason = await check(form);
      if (reason !== undefined) return result(breakAt(form, reason));
      if (form.position === known?.position) {
        if (!holds(form, known)) return result(breakAt(form, CHANGED));
        heldKnown = true;
      }
      verified += 1;
      last = form;
    }
    read += page.length;
    after = page.at(-1)?.position ?? after;
    yield { verified: read, of: Math.max(of, read) };
    if (page.length < PAGE || (read >= of && heldKnown)) {
      if (heldKnown || known === undefined) return result();
      const place = { position: known.position, stream: '', revision: 0 };
      return result(breakAt(place, CUT));
    }
    await turn();
  }
  return undefined;
}
