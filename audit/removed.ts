/** What somebody took out of the log past the service, for an auditor of all merchants or of one. */
import type { LogBreak } from '../shared/event-store/breaks.ts';
import {
  missingPayments,
  type RemovedStreams,
  removedStreams,
} from '../shared/read-models/removed-streams.ts';
import type { AuditDeps } from './deps.ts';

type Deps = Pick<AuditDeps, 'store' | 'readModels' | 'merchants'>;

const isOf = async ({ merchants }: Deps, { stream }: LogBreak, only: string): Promise<boolean> =>
  (await merchants.of({ stream, revision: 1, position: '', unreadable: '' })) === only;

/**
 * The removals that one merchant, or an auditor of all, may see. A log with a chain over all of it shows
 * them by itself: what it lost is only named, and where it `isBroken` alone. Throws StoreUnavailable.
 */
export const removedFor = async (
  deps: Deps,
  only: string | undefined,
  isBroken: boolean,
  signal: AbortSignal,
): Promise<RemovedStreams> => {
  if (deps.store.stored.guarantee === 'log') {
    const missing =
      isBroken && only === undefined ? await missingPayments(deps, signal) : undefined;
    return { breaks: [], ...(missing && { missing }) };
  }
  const removed = await removedStreams(deps, signal);
  if (only === undefined) return removed;
  const breaks: LogBreak[] = [];
  for (const broken of removed.breaks) if (await isOf(deps, broken, only)) breaks.push(broken);
  return { breaks };
};
