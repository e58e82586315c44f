/**
 * What `payments doctor` reports that waits for a person although settings and engines are well: parked
 * payments, and a break of the log. Each names the command that shows the whole of it.
 */
import type { LogStatus, ParkedList } from '../projector/contract.ts';
import { placeOf } from './breaks.ts';
import { jsonOf, openClient } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { count } from './output.ts';

/** One thing that stands there, in a sentence, and the command to go on with. */
export type AttentionItem = {
  reason: 'PARKED_READ_MODEL' | 'LOG_BROKEN';
  what: string;
  next: string;
};

/** `unknown` says why it could not be looked for. */
export type Attention = { items: AttentionItem[]; unknown?: string };

const NAMED_MAX = 3;

const parkedItems = ({ parked }: ParkedList): AttentionItem[] => {
  if (parked.length === 0) return [];
  const named = parked.slice(0, NAMED_MAX).map((one) => `${one.paymentId} (${one.reason})`);
  const more = parked.length > NAMED_MAX ? ', …' : '';
  const what = `${count(parked.length, 'payment')} parked: ${named.join(', ')}${more}`;
  return [{ reason: 'PARKED_READ_MODEL', what, next: 'payments parked list' }];
};

const brokenItems = ({ verification: { broken, lastRunAt } }: LogStatus): AttentionItem[] => {
  if (broken === null) return [];
  const what = `the log is broken, as it was verified at ${lastRunAt}: ${placeOf(broken)}`;
  return [{ reason: 'LOG_BROKEN', what, next: 'payments verify --all' }];
};

/** Asks the projector. Never throws CommandFailed: what cannot be asked is not known. */
export const lookForAttention = async (): Promise<Attention> => {
  try {
    const client = await openClient({ scope: 'ops:admin' });
    const [parked, log] = await Promise.all([
      jsonOf<ParkedList>(client.get('/ops/v1/parked')),
      jsonOf<LogStatus>(client.get('/ops/v1/log')),
    ]);
    return { items: [...parkedItems(parked), ...brokenItems(log)] };
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return { items: [], unknown: error.message };
  }
};
