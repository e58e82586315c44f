/** The jobs that a thread runs where the log is a file (embedded/jobs.ts): over the log, and others. */
export const projectorLogJobs = {
  verifyWithHead: async () => (await import('../audit/verification.ts')).verifyWithHead,
  fillGeneration: async () => (await import('./rebuild.ts')).fillGeneration,
  compareFile: async () => (await import('./compare.ts')).compareFile,
  exportLog: async () => (await import('../audit/log.ts')).exportLog,
};

export const projectorJobs = {
  deliverWebhooks: async () => (await import('../webhooks/delivery/thread.ts')).deliverWebhooks,
  checksumFile: async () =>
    (await import('../shared/read-models/sqlite/file-jobs.ts')).checksumFile,
  moveLog: async () => (await import('../shared/read-models/sqlite/file-jobs.ts')).moveLog,
};
