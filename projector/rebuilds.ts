/** The rebuilds of this process: starts them, and knows the one that runs, else the last one. */
import { RebuildRunning } from '../shared/read-models/errors.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import {
  type RebuildOptions,
  type RebuildProgress,
  type RebuildResult,
  rebuild,
} from './rebuild.ts';

export type RebuildState = RebuildProgress & {
  state: 'running' | 'done' | 'failed';
  /** RFC 3339, as `endedAt`. */
  startedAt: string;
  endedAt?: string;
  /** Set in the state `done`. */
  result?: RebuildResult;
  /** Why it failed. */
  reason?: string;
};

/** See RebuildOptions. */
export type RebuildRequest = Pick<RebuildOptions, 'onProgress' | 'accept'>;

export type Rebuilds = {
  /** Undefined where no rebuild was started since the process was. */
  latest(): RebuildState | undefined;
  /** Throws what `rebuild` throws. One that is rejected because another one runs leaves `latest` as it is. */
  run(request?: RebuildRequest): Promise<RebuildResult>;
  /** Stops a rebuild that runs, at its next batch. */
  abort(): void;
  /** Resolves when no rebuild runs any more. */
  ended(): Promise<unknown>;
};

export const createRebuilds = (
  options: Omit<RebuildOptions, 'onProgress' | 'accept' | 'signal'>,
): Rebuilds => {
  const stopping = new AbortController();
  let latest: RebuildState | undefined;
  let running: Promise<unknown> = Promise.resolve();
  let isRunning = false;

  const runOne = async ({ accept, onProgress }: RebuildRequest): Promise<RebuildResult> => {
    const startedAt = new Date().toISOString();
    // Unset until the first progress: before that, another rebuild may be the one that runs.
    let own: RebuildState | undefined;
    const note = (change: Partial<RebuildState>): void => {
      if (own === undefined) return;
      own = { ...own, ...change };
      latest = own;
    };
    const report = (progress: RebuildProgress): void => {
      own ??= { state: 'running', startedAt, ...progress };
      note(progress);
      onProgress?.(progress);
    };
    // Two of one process are told apart here: at the store they would race for the turn.
    if (isRunning) throw new RebuildRunning('the read models are being rebuilt already');
    isRunning = true;
    try {
      const result = await rebuild({
        ...options,
        accept: accept === true,
        signal: stopping.signal,
        onProgress: report,
      });
      note({ state: 'done', endedAt: new Date().toISOString(), result });
      return result;
    } catch (error) {
      note({ state: 'failed', endedAt: new Date().toISOString(), reason: reasonOf(error) });
      throw error;
    } finally {
      isRunning = false;
    }
  };

  return {
    latest: () => latest,
    run: (request = {}) => {
      const result = runOne(request);
      running = Promise.allSettled([running, result]);
      return result;
    },
    abort: () => stopping.abort(),
    ended: () => running,
  };
};
