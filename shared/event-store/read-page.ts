import { pause } from '../runtime/back-off.ts';
import { StoreFileUnusable, StoreUnavailable } from './errors.ts';
import type { Position, StoredForm, StoredForms } from './port.ts';
import { breakAt } from './verify-chain.ts';

type ReadAll = Pick<StoredForms, 'readAll'>;

const LOG_START = { position: '0', stream: '', revision: 0 };

/** A scan may last hours and outlives a change of leader. */
const TRIES_MAX = 3;
const PAUSE_MS = 1_000;

/** Reads again where the store does not respond, until `signal` is aborted. Throws as `readAll`. */
export const readPatiently = async (
  { readAll }: ReadAll,
  signal: AbortSignal,
  ...range: Parameters<ReadAll['readAll']>
): Promise<StoredForm[]> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await readAll(...range);
    } catch (error) {
      const mayPass = error instanceof StoreUnavailable && !(error instanceof StoreFileUnusable);
      if (!mayPass || tries === TRIES_MAX) throw error;
      await pause(PAUSE_MS, signal);
      // A stop has less time than three reads.
      if (signal.aborted) throw error;
    }
  }
};

const oneByOne = async (
  { readAll }: ReadAll,
  from: Position | null,
  limit: number,
  upTo: Position | null,
): Promise<StoredForm[]> => {
  const forms: StoredForm[] = [];
  let after = from;
  try {
    while (forms.length < limit) {
      const [form] = await readAll(after, 1, upTo);
      if (form === undefined) break;
      forms.push(form);
      after = form.position;
    }
  } catch (error) {
    if (!(error instanceof StoreFileUnusable)) throw error;
  }
  return forms;
};

/** As `readPatiently`; the events before a break, and the break as `unreadable`. */
export const readPage = async (
  stored: ReadAll,
  signal: AbortSignal,
  after: Position | null,
  limit: number,
  upTo: Position | null,
  last?: Pick<StoredForm, 'position' | 'stream' | 'revision'>,
) => {
  try {
    return { page: await readPatiently(stored, signal, after, limit, upTo) };
  } catch (error) {
    if (!(error instanceof StoreFileUnusable)) throw error;
    const page = await oneByOne(stored, after, limit, upTo);
    const why = `what comes after it cannot be read: ${error.message}`;
    return { page, unreadable: breakAt(page.at(-1) ?? last ?? LOG_START, why) };
  }
};
