/** Every job that runs in a thread; this module is what the threads start with. */
import { commandLogJobs } from '../command-api/jobs.ts';
import { projectorJobs, projectorLogJobs } from '../projector/jobs.ts';
import { queryJobs, queryLogJobs } from '../query-api/jobs.ts';
import type { LogJob } from '../shared/event-store/port.ts';
import {
  createJobThread,
  type JobList,
  type NewThread,
  serveJobs,
} from '../shared/runtime/jobs.ts';

const LOG_JOBS = { ...commandLogJobs, ...projectorLogJobs, ...queryLogJobs };

type LoadLogJob = () => Promise<LogJob<never, unknown, unknown, never>>;

const overLogs = (jobs: Record<string, LoadLogJob>): JobList => {
  const loadFor = (load: LoadLogJob) => async () =>
    (await import('../shared/event-store/sqlite/log-reader.ts')).overLog(await load());
  return Object.fromEntries(Object.entries(jobs).map(([name, load]) => [name, loadFor(load)]));
};

export const newThread: NewThread = (priorityLoweredBy) =>
  createJobThread(new URL(import.meta.url), priorityLoweredBy);

serveJobs({ ...overLogs(LOG_JOBS), ...projectorJobs, ...queryJobs });
