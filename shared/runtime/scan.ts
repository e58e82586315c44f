/** Scans: long reads that run in a thread of their own (scan-thread.ts), or where they are called. */

/** What a scan has beside its arguments. */
export type ScanTools = {
  /** Aborted when the reader wants no more of the scan, which then ends at its next step. */
  signal: AbortSignal;
  /** Calls a function of the scan's order in the thread that ordered it. Throws what that throws. */
  call(name: string, ...args: unknown[]): Promise<unknown>;
};

/** Values and a result, or a result alone: plain data, because threads copy it. */
export type Scanned<Y, R> = AsyncGenerator<Y, R> | Promise<R>;

/** A scan, which a module exports by the name of its job. */
export type Scan<A, Y, R> = (args: A, tools: ScanTools) => Scanned<Y, R>;

type Job = {
  /** The address (`file:///…`) of the module, and the name of the scan that it exports. */
  module: string;
  job: string;
};

/** What to run. */
export type ScanOrder = Job & {
  args: unknown;
  /** What the scan may call; carried out while its reader reads on. */
  calls?: Record<string, (...args: never[]) => Promise<unknown>>;
  signal?: AbortSignal | undefined;
};

/** Runs the scan that an order names, step by step. */
export async function* stepsOf<Y, R>(
  { module, job }: Job,
  ...given: unknown[]
): AsyncGenerator<Y, R> {
  const { [job]: scan } = await import(module);
  const made: Scanned<Y, R> = scan(...given);
  return made instanceof Promise ? await made : yield* made;
}

/** The result of a scan, without its values. */
export const resultOf = async <R>(steps: AsyncGenerator<unknown, R>): Promise<R> => {
  let step = await steps.next();
  while (step.done !== true) step = await steps.next();
  return step.value;
};

/** An error on its way between threads: of a class only its name stays. */
export type Failure = { name: string; message: string; [field: string]: unknown };

export const failureOf = (error: unknown): Failure => {
  // Not `instanceof Error`: an error can be one of another realm.
  const { name = 'Error', message = String(error) } = Object(error);
  // Codes are plain; a field that cannot be posted would lose the error itself.
  const plain = Object.entries(Object(error)).filter(([, value]) => Object(value) !== value);
  return { ...Object.fromEntries(plain), name, message };
};

export const errorFrom = (failure: Failure): Error =>
  Object.assign(new Error(failure.message), failure);

/** To the thread: one more value may be made, the scan is to end, or the reply to its call. */
export type ToThread =
  | 'next'
  | 'stop'
  | { call: number; value: unknown }
  | { call: number; failure: Failure };

/** From the thread. */
export type FromThread =
  | { value: unknown }
  | { result: unknown }
  | { failure: Failure }
  | { call: number; name: string; args: unknown[] };
