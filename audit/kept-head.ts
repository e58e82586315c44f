/**
 * Compares the log with the head of an earlier export. A head proves something only about its own
 * log and merchants: else it is not comparable.
 */

import type { LogBreak } from '../shared/event-store/breaks.ts';
import type { Position, StoredForm } from '../shared/event-store/port.ts';
import { breakAt } from '../shared/event-store/verify-chain.ts';

export type KeptHead = {
  position: Position;
  /** The log hash of the event there, else its own hash. */
  hash: string;
  /** The id of the exported log (log-id.ts); undefined where the client does not say. */
  log?: string | undefined;
  /** The one merchant whose events were exported; undefined for all. */
  merchant?: string | undefined;
};

export type Scope = { logId: string; only: string | undefined };

const CHANGED = 'its hash is not the one that was exported: the log was rewritten';
const CUT = 'the log does not hold it any more: events were cut off';

const holds = ({ hash, logHash }: StoredForm, kept: KeptHead): boolean =>
  kept.hash === hash || kept.hash === logHash;

/** Undefined where it proves something. */
const notComparable = (kept: KeptHead, { logId, only }: Scope): string | undefined => {
  if (kept.log === undefined) return 'the kept head does not name the log that it is of';
  if (kept.log !== logId) return `the kept head is of another log (${kept.log}, not ${logId})`;
  if (only === undefined || kept.merchant === only) return undefined;
  return kept.merchant === undefined
    ? "the kept head is of all merchants' events, and only one merchant's are verified"
    : "the kept head is of another merchant's events";
};

export type KeptHeadFound = { position: Position; found: boolean; notComparable?: string };

export const keptHeadCheck = (kept: KeptHead | undefined, scope: Scope) => {
  const reason = kept === undefined ? undefined : notComparable(kept, scope);
  const proves = kept !== undefined && reason === undefined;
  let found = false;
  let isMet = false;
  return {
    /** Undefined where the event fits, and for any event but the one at the kept position. */
    compare: (form: StoredForm): string | undefined => {
      if (kept === undefined || form.position !== kept.position) return undefined;
      isMet = true;
      found = holds(form, kept);
      return found || !proves ? undefined : CHANGED;
    },
    /** The break where the log ended before the kept position. */
    missing: (): LogBreak | undefined =>
      isMet || !proves ? undefined : breakAt({ ...kept, stream: '', revision: 0 }, CUT),
    result: (): KeptHeadFound | undefined => {
      if (kept === undefined) return undefined;
      const { position } = kept;
      return found || reason === undefined
        ? { position, found }
        : { position, found, notComparable: reason };
    },
  };
};
