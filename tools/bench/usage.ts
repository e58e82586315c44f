/** Loaded by `--import` into each server: replies to each message with what the process has used so far. */
import { isMainThread } from 'node:worker_threads';

/** `cpuUs` counts all threads from the start of the process. */
export type Usage = { cpuUs: number; rssBytes: number };

if (isMainThread && process.channel) {
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuUs: user + system, rssBytes: process.memoryUsage.rss() } satisfies Usage);
  });
  // No server outlives a bench that was killed.
  process.on('disconnect', () => process.exit());
  // The server must be able to end while its parent lives.
  process.channel.unref();
}
