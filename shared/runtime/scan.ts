/** What a scan is: a long read that runs in a thread of its own (scan-thread.ts), or wherever it is called. */

/** What a scan has beside its arguments. */
export type ScanTools = {
  /** Aborted when nobody wants more of the scan: it ends at its next step. */
  signal: AbortSignal;
  /** Calls a function of the scan's order, in the thread that ordered it. Throws what that throws. */
  call(name: string, ...args: unknown[]): Promise<unknown>;
};

/** What a scan makes: values and a result, or a result alone. */
export type Scanned<Y, R> = AsyncGenerator<Y, R> | Promise<R>;

/** A scan, which a module exports as `scan`. Arguments, values and result are plain data: threads copy them. */
export type Scan<A, Y, R> = (args: A, tools: ScanTools) => Scanned<Y, R>;

/** What to run. */
export type ScanOrder = {
  /** The address (`file:///…`) of the module that exports `scan`. */
  module: string;
  args: unknown;
  /** What the scan may call. */
  calls?: Record<string, (...args: never[]) => Promise<unknown>>;
  signal?: AbortSignal | undefined;
};

/** What a scan makes, step by step. */
export async function* stepsOf<Y, R>(made: Scanned<Y, R>): AsyncGenerator<Y, R> {
  return made instanceof Promise ? await made : yield* made;
}

/** The result of a scan whose values nobody wants. */
export const resultOf = async <R>(steps: AsyncGenerator<unknown, R>): Promise<R> => {
  let step = await steps.next();
  while (step.done !== true) step = await steps.next();
  return step.value;
};
