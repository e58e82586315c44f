/** What `payments reconcile` ends with: how much differs, and the step that helps with each kind of it. */
import type { Reconciliation } from '../command-api/reconcile/contract.ts';
import type { Difference } from '../command-api/reconcile/differences.ts';
import { count } from './output.ts';

type Kind = Difference['kind'];

const EVENTS = 'payments events <payment> for each';

/** By kind, where the payment's events do not show what is different. */
const NEXT: Partial<Record<Kind, string>> = {
  // The log holds no event of such an operation, and often not even its payment.
  MISSING_IN_LOG:
    'keep this list (--format json); after a restore put right what was sent without an Idempotency-Key, then payments reconcile --acknowledge, and merchants repeat the rest',
  UNRESOLVED_IN_LOG: 'payments unresolved',
  UNREADABLE_IN_LOG: 'payments verify <payment> for each',
};

/** The kinds that were found, under the step that helps with them. */
const stepsFor = (byKind: Reconciliation['byKind']): string[] => {
  const kinds = Object.entries(byKind).filter(([, found]) => found > 0) as [Kind, number][];
  const named = kinds.filter(([kind]) => NEXT[kind] !== undefined);
  const others = kinds.filter(([kind]) => NEXT[kind] === undefined);
  const steps = named.map(([kind, found]) => `for ${found} ${kind}: ${NEXT[kind]}`);
  const rest = others.map(([kind, found]) => `${found} ${kind}`).join(', ');
  return others.length === 0 ? steps : [...steps, `for ${rest}: ${EVENTS}`];
};

/** What is wrong, and what to do next, as one line. */
export const failureOf = (
  result: Pick<Reconciliation, 'differences' | 'more' | 'byKind' | 'unreadable' | 'notCompared'>,
): string => {
  const { differences, more, byKind, unreadable, notCompared } = result;
  const found = differences.length + more;
  const parts = [
    ...(found > 0 ? [`${count(found, 'difference')}; next: ${stepsFor(byKind).join('; ')}`] : []),
    ...(unreadable > 0
      ? [
          `${count(unreadable, 'event')} cannot be read; next: payments verify --all says whether the log was changed; if it is intact, start the version that wrote them`,
        ]
      : []),
    ...(notCompared > 0
      ? [
          `${notCompared} operations had no counterpart where the comparison stopped; is it the ledger of this log?`,
        ]
      : []),
  ];
  return parts.join('; ');
};
