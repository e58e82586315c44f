import { newThread } from '../../../embedded/jobs.ts';
import type { JobThread, NewThread } from '../../../shared/runtime/jobs.ts';

/** By how much their priority is lowered, which no thread takes back. */
const kept = new Map<number, JobThread[]>();

/**
 * A thread that goes on to the next service: to start one and load its jobs costs a sixth of a second of CPU. One
 * whose job is under way ends with its service, and so does that of the searches, which keeps its file open.
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
      if (underWay > 0 || loweredBy === 0) await last?.end();
      else if (last !== undefined) idle.push(last);
    },
  };
};
