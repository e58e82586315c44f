/** Long reads of a log: as a scan, in a thread where the store has one, and page by page. */
import { setImmediate as turn } from 'node:timers/promises';
import { pause } from '../runtime/back-off.ts';
import { type JobGiven, runHere } from '../runtime/jobs.ts';
import { breakAt } from './chain.ts';
import { StoreFileUnusable, StoreUnavailable } from './errors.ts';
import type { LogJob, LogReader, Position, StoredForm, StoredForms } from './port.ts';

const asPromised = (error: unknown): unknown => {
  const { code, name, message, isDamaged } = Object(error);
  if (error instanceof StoreUnavailable) return error;
  if (code === 'EVENT_STORE_FILE_UNUSABLE') return new StoreFileUnusable(message, isDamaged);
  const isUnavailable = code === 'EVENT_STORE_UNAVAILABLE' || name === 'ThreadEnded';
  return isUnavailable ? new StoreUnavailable(message) : error;
};

/** In a thread where the store has one. Throws what the job throws, from a thread as an Error. */
export async function* scanLog<A, Y, R, C extends object>(
  store: LogReader,
  job: LogJob<A, Y, R, C>,
  args: A,
  given: JobGiven<C>,
): AsyncGenerator<Y, R> {
  const { scan = scanHere(store) } = store.stored;
  try {
    return yield* scan(job, args, given);
  } catch (error) {
    throw asPromised(error);
  }
}

const scanHere =
  (store: LogReader): NonNullable<StoredForms['scan']> =>
  (job, args, given) =>
    runHere((own, tools) => job(store, own, tools), args, given);

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
  upTo: Position,
): Promise<StoredForm[]> => {
  const forms: StoredForm[] = [];
  try {
    while (forms.length < PAGE) {
      const [form] = await readAll(forms.at(-1)?.position ?? from, 1, upTo);
      if (form === undefined) break;
      forms.push(form);
    }
  } catch (error) {
    if (!(error instanceof StoreFileUnusable)) throw error;
  }
  return forms;
};

const PAGE = 250;

/**
 * The events after a position up to `end`, until `signal` aborts; other work runs between pages. Ends after a
 * page with `unreadable` (the break after it) or an empty one (the log lacks its end). Throws StoreUnavailable.
 */
export async function* logPages(
  stored: ReadAll,
  from: Position | null,
  end: Position | null,
  signal: AbortSignal,
) {
  let last: Parameters<typeof breakAt>[0] = LOG_START;
  for (let after = from; end !== null && after !== end && !signal.aborted; after = last.position) {
    let page: StoredForm[];
    try {
      page = await readPatiently(stored, signal, after, PAGE, end);
    } catch (error) {
      if (!(error instanceof StoreFileUnusable)) throw error;
      page = await oneByOne(stored, after, end);
      const why = `what comes after it cannot be read: ${error.message}`;
      yield { page, unreadable: breakAt(page.at(-1) ?? last, why) };
      return;
    }
    yield { page };
    if (page.length === 0) return;
    last = page.at(-1) ?? last;
    await turn();
  }
}

/** The number that a position begins with: for a graph or a bar, never for a decision. */
export const positionAsNumber = (position: Position | null): number =>
  Number.parseInt(position ?? '0', 10);

/** Exact where the store numbers its events and at the end; else an estimate. */
export const totalUpTo = (
  end: Position | null,
  { read, at }: { read: number; at: Position | null },
): { total: number; isExact: boolean } => {
  const [passed, whole] = [positionAsNumber(at), positionAsNumber(end)];
  if (at === end || passed === 0) return { total: read, isExact: at === end };
  const isExact = passed === read;
  return { total: Math.max(read, Math.round(read * (whole / passed))), isExact };
};
