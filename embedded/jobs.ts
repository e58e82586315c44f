/**
 * Every job that runs in a thread, by its name; this module is what the threads start with. Each is loaded when it
 * first runs, so that a thread holds few modules.
 */
import type { LogJob } from '../shared/event-store/port.ts';
import {
  createJobThread,
  type JobList,
  type NewThread,
  serveJobs,
} from '../shared/runtime/jobs.ts';

const LOG_JOBS = {
  verifyWithHead: async () => (await import('../audit/verification.ts')).verifyWithHead,
  checkKeys: async () => (await import('../personal-data/verify-keys.ts')).checkKeys,
  exportLog: async () => (await import('../audit/log.ts')).exportLog,
  readLogPage: async () => (await import('../audit/log.ts')).readLogPage,
  pastEvents: async () => (await import('../audit/log.ts')).pastEvents,
  pastMessages: async () => (await import('../query-api/past-messages.ts')).pastMessages,
  findErasures: async () => (await import('../personal-data/erasure/erasures.ts')).findErasures,
  fillGeneration: async () => (await import('../projector/rebuild.ts')).fillGeneration,
  compareFile: async () => (await import('../projector/compare.ts')).compareFile,
  reconcileLog: async () =>
    (await import('../command-api/back-office/reconcile/reconcile.ts')).reconcileLog,
};

type LoadLogJob = () => Promise<LogJob<never, unknown, unknown, never>>;

const overLogs = (jobs: Record<string, LoadLogJob>): JobList => {
  const loadFor = (load: LoadLogJob) => async () =>
    (await import('../shared/event-store/sqlite/log-reader.ts')).overLog(await load());
  return Object.fromEntries(Object.entries(jobs).map(([name, load]) => [name, loadFor(load)]));
};

export const newThread: NewThread = (priorityLoweredBy) =>
  createJobThread(new URL(import.meta.url), priorityLoweredBy);

serveJobs({
  ...overLogs(LOG_JOBS),
  searchFile: async () => (await import('../shared/read-models/sqlite/file-jobs.ts')).searchFile,
  checksumFile: async () =>
    (await import('../shared/read-models/sqlite/file-jobs.ts')).checksumFile,
  moveLog: async () => (await import('../shared/read-models/sqlite/file-jobs.ts')).moveLog,
  deliverWebhooks: async () => (await import('../webhooks/delivery/thread.ts')).deliverWebhooks,
});
