/** The jobs that a thread runs where the log is a file (embedded/jobs.ts): over the log, and others. */
export const queryLogJobs = {
  verifyWithHead: async () => (await import('../audit/verification.ts')).verifyWithHead,
  exportLog: async () => (await import('../audit/log.ts')).exportLog,
  readLogPage: async () => (await import('../audit/log.ts')).readLogPage,
  pastEvents: async () => (await import('../audit/log.ts')).pastEvents,
  pastMessages: async () => (await import('./past-messages.ts')).pastMessages,
};

export const queryJobs = {
  searchFile: async () => (await import('../shared/read-models/sqlite/file-jobs.ts')).searchFile,
};
