/** `payments verify --acknowledge`: a person has looked at a break of the log, and it may stay. */
import type { AuditVerification } from '../audit/contract.ts';
import { nameOf, placeOf } from './breaks.ts';
import { jsonOf, openClient } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { note } from './output.ts';

/**
 * Records every break of this name that a verification has found. Throws CommandFailed where it has found
 * none that is not acknowledged yet.
 */
export const acknowledgeBreaks = async (
  { breaks }: Pick<AuditVerification, 'breaks'>,
  name: string,
  why: string,
): Promise<void> => {
  const named = breaks?.named.filter((one) => nameOf(one) === name) ?? [];
  if (named.length === 0) {
    const is = breaks?.acknowledged.some((one) => nameOf(one) === name);
    throw new CommandFailed(
      `${name} ${is ? 'is acknowledged already' : 'is no break of the log'}; the breaks by their names: payments verify --all`,
    );
  }
  const client = await openClient({ scope: 'ops:admin' });
  for (const { position: _, ...one } of named) {
    await jsonOf(client.post('/ops/v1/log/acknowledge', { ...one, note: why }));
    note(`acknowledged: ${placeOf({ position: '', ...one })}`);
  }
};
