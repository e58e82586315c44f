/** A real server for tests and trials that needs no Docker: what `npm run engines` starts. */

export type Engine = {
  name: string;
  /** The setting that it gives a value for, such as `KAFKA_BROKERS`. */
  variable: string;
  /** Why this machine cannot run it, and what would help; undefined when it can. */
  available(): string | undefined;
  /**
   * Starts it on free ports of loopback with its data in `folder`, as a process that outlives this
   * one, and resolves when it answers. On a folder used before it goes on with what is there, at
   * the same address. Throws Error, one line, where it does not come up.
   */
  start(folder: string, log: (line: string) => void): Promise<{ value: string; pid: number }>;
};
