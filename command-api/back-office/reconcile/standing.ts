/** Differences stand until they are gone: LEDGER_DIFFERS, an item of attention (gaps §25, §28). */
import type { CheckResult, openCheckRecord } from '../../../audit/check-record.ts';
import { fewAtOnce } from '../../../shared/runtime/scheduling.ts';
import { LISTED_MAX } from './books.ts';
import type { Reconciliation } from './contract.ts';
import type { Difference } from './differences.ts';

export type LedgerStanding = {
  record: Pick<ReturnType<typeof openCheckRecord>, 'load' | 'now' | 'note'>;
  /** Asks about a difference that was found before. Never throws. */
  stillDiffers: (difference: Difference) => Promise<boolean>;
};

/** Unreadable payments that are kept by name. */
const NAMED_MAX = 100;

const NOT_COMPARED = 'NOT_COMPARED';

/** An operation whose outcome recovery still asks for is no fault. */
export const faultsOf = ({ byKind, unreadable, notCompared }: Reconciliation): number => {
  const differences = Object.values(byKind).reduce((sum, count) => sum + count, 0);
  return differences - byKind.UNRESOLVED_IN_LOG + unreadable + notCompared;
};

const whatDiffers = (count: number, [first]: readonly string[]): string => {
  const places = count === 1 ? '1 place' : `${count} places`;
  const [kind, , paymentId] = first?.split(' ') ?? [];
  const where = paymentId === undefined ? '' : `, first ${kind} of ${paymentId}`;
  return `Log and provider's ledger differ in ${places}${where}`;
};

const keyOf = ({ kind, operationId, paymentId }: Difference): string =>
  `${kind} ${operationId} ${paymentId}`;
const differenceOfKey = (key: string): Difference => {
  const [kind, operationId = '', paymentId = ''] = key.split(' ');
  return { kind: kind as Difference['kind'], operationId, paymentId };
};

const checkResultOf = (result: Reconciliation): CheckResult => {
  const { unreadable, unreadableEvents, notCompared } = result;
  const differences = result.differences.filter(({ kind }) => kind !== 'UNRESOLVED_IN_LOG');
  const keys = [...differences.map(keyOf), ...(notCompared > 0 ? [NOT_COMPARED] : [])];
  const count = faultsOf(result) - unreadable;
  const unread = new Set(unreadableEvents.map(({ paymentId }) => paymentId));
  return {
    faults: { count, keys: keys.slice(0, LISTED_MAX), what: whatDiffers(count, keys), over: [] },
    unreadable: [...unread].slice(0, NAMED_MAX),
  };
};

const standing = async (
  { record, stillDiffers }: LedgerStanding,
  found: readonly Difference[],
): Promise<Difference[]> => {
  await record.load();
  const now = new Set(found.map(keyOf));
  const before = record.now().standing?.keys.filter((key) => key !== NOT_COMPARED) ?? [];
  const known = before.filter((key) => !now.has(key)).map(differenceOfKey);
  const stands = await fewAtOnce(known, stillDiffers);
  return known.filter((_, at) => stands[at]);
};

/** Keeps what was found; of a window, with what was found before and differs still. */
export const noteFound = async (
  deps: LedgerStanding,
  result: Reconciliation,
): Promise<Reconciliation> => {
  const stands = result.since === undefined ? [] : await standing(deps, result.differences);
  const byKind = { ...result.byKind };
  for (const { kind } of stands) byKind[kind] += 1;
  const differences = [...result.differences, ...stands];
  const found = { ...result, ok: result.ok && stands.length === 0, differences, byKind };
  await deps.record.note(checkResultOf(found));
  return found;
};

/** Between two comparisons: what was found is asked about again. */
export const askAgain = async (deps: LedgerStanding): Promise<void> => {
  const stands = (await standing(deps, [])).map(keyOf);
  const { standing: before, unreadable } = deps.record.now();
  if (before === undefined) return;
  const keys = before.keys.filter((key) => key === NOT_COMPARED || stands.includes(key));
  const count = before.count - before.keys.length + keys.length;
  const faults = { count, keys, what: whatDiffers(count, keys), over: [] };
  await deps.record.note({ faults, unreadable });
};
