/** What is known of the rebuilds of this process: the one that runs, else the last one. */
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { RebuildProgress, RebuildResult } from './rebuild.ts';

export type RebuildState = RebuildProgress & {
  state: 'running' | 'done' | 'failed';
  startedAt: string;
  endedAt?: string;
  /** Where it is done. */
  result?: RebuildResult;
  /** Why it failed. */
  reason?: string;
};

export type Rebuilds = {
  /** Undefined where none was started since the process was. */
  latest(): RebuildState | undefined;
  /**
   * Follows a rebuild that `run` carries out, and hands on its result. One that fails before it
   * has begun, because another one runs, leaves what is known of that other one.
   */
  follow(
    run: (onProgress: (progress: RebuildProgress) => void) => Promise<RebuildResult>,
  ): Promise<RebuildResult>;
};

export const createRebuilds = (): Rebuilds => {
  let latest: RebuildState | undefined;
  return {
    latest: () => latest,
    follow: async (run) => {
      const startedAt = new Date().toISOString();
      let own: RebuildState | undefined;
      const show = (change: Partial<RebuildState>): void => {
        if (own === undefined) return;
        own = { ...own, ...change };
        latest = own;
      };
      try {
        const result = await run((progress) => {
          own ??= { state: 'running', startedAt, ...progress };
          show(progress);
        });
        show({ state: 'done', endedAt: new Date().toISOString(), result });
        return result;
      } catch (error) {
        show({ state: 'failed', endedAt: new Date().toISOString(), reason: reasonOf(error) });
        throw error;
      }
    },
  };
};
