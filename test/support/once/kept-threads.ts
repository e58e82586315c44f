import { newThread } from '../../../embedded/jobs.ts';
import type { JobThread, NewThread } from '../../../shared/runtime/jobs.ts';

/** By how much their priority is lowered, which no thread takes back. */
const kept = new Map<number, JobThread[]>();

/**
 * Threads that outlive the service that ends them, for the next one: to start one and to load its jobs costs a
 * sixth of a second of CPU. One whose job is under way ends, and so does that of the searches, which is bound to a file.
 */
export const keptThread: NewThread = (loweredBy = 0) => {
  const idle = kept.get(loweredBy) ?? [];
  if (loweredBy > 0) kept.set(loweredBy, idle);
  let thread: JobThread | undefined;
  let underWay = 0;
  return {
    run: async function* (job, args, given) {
      thread ??= idle.pop() ?? newThread(loweredBy);
      underWay += 1;
      try {
        return yield* thread.run(job, args, given);
      } finally {
        underWay -= 1;
      }
    },
    end: async () => {
      const last = thread;
      thread = undefined;
      if (last === undefined) return;
      if (underWay > 0 || loweredBy === 0) await last.end();
      else idle.push(last);
    },
  };
};
