/** How the command side stops: it begins no new question, and waits for the commands that run. */
import { setTimeout as delay } from 'node:timers/promises';
import type { CommandDeps } from './deps.ts';
import type { Waiting } from './request-budget.ts';

export type Stop = {
  /** Asks the provider nothing that no request waits for, and ends each request's wait in time. */
  begin(): void;
  /** Resolves when the queues are empty, or when the process has no more time. */
  finish(): Promise<void>;
};

/** A stop waits for no engine after this time (docs/eventstoredb.md, shared/runtime/process-life.ts). */
const STOP_MS_MAX = 7_300;
const STOP_MS_MIN = 200;
/** Below the 8 s after which connections are cut (shared/http/server/close-gracefully.ts). */
const RESPONSES_MS_MAX = 7_000;

export const createStop = (
  { queues, unresolved }: Pick<CommandDeps, 'queues' | 'unresolved'>,
  waiting: Waiting,
): Stop => {
  let beganMs: number | undefined;
  return {
    begin: () => {
      beganMs ??= performance.now();
      unresolved.stopAsking();
      // A provider call may outlast the stop: its request is answered with an unknown outcome.
      setTimeout(() => {
        for (const { spend } of waiting) spend?.();
      }, RESPONSES_MS_MAX).unref();
    },
    finish: async () => {
      const passedMs = performance.now() - (beganMs ?? performance.now());
      const waitMs = Math.max(STOP_MS_MIN, STOP_MS_MAX - passedMs);
      await Promise.race([queues.idle(), delay(waitMs, undefined, { ref: false })]);
    },
  };
};
