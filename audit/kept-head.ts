/**
 * Compares the log with a head that was kept elsewhere: the head of an earlier export. A head says
 * something about a log only where it is of that log and of what is verified, so there are three
 * findings: the log holds it, the log does not hold it any more, or the two cannot be compared.
 */

import type { LogBreak } from '../shared/event-store/breaks.ts';
import type { Position, StoredForm } from '../shared/event-store/port.ts';
import { breakAt } from '../shared/event-store/verify-chain.ts';

/** The head of an earlier export, as its manifest names it. */
export type KeptHead = {
  position: Position;
  /** The log hash of the event there, else its own hash. */
  hash: string;
  /** The id of the log that was exported (log-id.ts); undefined where the client does not say. */
  log?: string | undefined;
  /** The one merchant whose events were exported; undefined where they were everybody's. */
  merchant?: string | undefined;
};

/** What is verified: the log with this id, or one merchant's events in it. */
export type Scope = { logId: string; only: string | undefined };

const CHANGED = 'its hash is not the one that was exported: the log was rewritten';
const CUT = 'the log does not hold it any more: events were cut off';

const holds = ({ hash, logHash }: StoredForm, kept: KeptHead): boolean =>
  kept.hash === hash || kept.hash === logHash;

/** Why a kept head proves nothing about what is verified; undefined where it does. */
const notComparable = (kept: KeptHead, { logId, only }: Scope): string | undefined => {
  if (kept.log === undefined) return 'the kept head does not name the log that it is of';
  if (kept.log !== logId) return `the kept head is of another log (${kept.log}, not ${logId})`;
  if (only === undefined || kept.merchant === only) return undefined;
  return kept.merchant === undefined
    ? "the kept head is of all merchants' events, and only one merchant's are verified"
    : "the kept head is of another merchant's events";
};

/** What was found of a kept head. */
export type KeptHeadFound = { position: Position; found: boolean; notComparable?: string };

/** Looks for a kept head among the events of the log, in their order. */
export const keptHeadCheck = (kept: KeptHead | undefined, scope: Scope) => {
  const reason = kept === undefined ? undefined : notComparable(kept, scope);
  const proves = kept !== undefined && reason === undefined;
  let found = false;
  let isMet = false;
  return {
    /** Why the event at the kept position does not fit; undefined where it does, and for any other event. */
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
