/** A real server for tests and trials that needs no Docker: what `npm run engines` starts. */
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder of what is built or fetched once, and of the list of the engines that run. */
export const CACHE = join(homedir(), '.cache', 'payments-engines');

/** An engine that `npm run engines` can start. */
export type Engine = {
  name: string;
  /** Why this machine cannot run the engine, and what would help; undefined when it can. */
  available(): string | undefined;
  /**
   * Starts the engine on free ports of loopback with its data in `folder`, as a process that outlives
   * this one, and resolves when it is ready with the variables that say where it is, such as
   * `KAFKA_BROKERS`. With a folder used before it has the same data and the same address. Throws
   * Error, one line, when the engine does not become ready.
   */
  start(
    folder: string,
    log: (line: string) => void,
  ): Promise<{ variables: Readonly<Record<string, string>>; pid: number }>;
};
