/** The jobs that a thread runs where the log is a file (embedded/jobs.ts): over the log. */
export const commandLogJobs = {
  reconcileLog: async () => (await import('./back-office/reconcile/reconcile.ts')).reconcileLog,
};
