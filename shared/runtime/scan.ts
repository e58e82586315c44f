/** Long reads, in a thread of their own (scan-thread.ts) or where they are called. */

export type ScanTools = {
  /** The reader wants no more; the scan ends at its next step. */
  signal: AbortSignal;
  /** Calls a function of the order in its thread. Throws its error. */
  call(name: string, ...args: unknown[]): Promise<unknown>;
};

/** Plain data, because threads copy it. */
export type Scanned<Y, R> = AsyncGenerator<Y, R> | Promise<R>;

export type Scan<A, Y, R> = (args: A, tools: ScanTools) => Scanned<Y, R>;

type Job = {
  /** A module's address (`file:///…`), and the name of its scan. */
  module: string;
  job: string;
};

export type ScanOrder = Job & {
  args: unknown;
  /** For the scan; carried out while its reader reads on. */
  calls?: Record<string, (...args: never[]) => Promise<unknown>>;
  signal?: AbortSignal | undefined;
};

export async function* stepsOf<Y, R>(
  { module, job }: Job,
  ...given: unknown[]
): AsyncGenerator<Y, R> {
  const { [job]: scan } = await import(module);
  const made: Scanned<Y, R> = scan(...given);
  return made instanceof Promise ? await made : yield* made;
}

/** The same steps in another form, then the same result. */
export async function* mapSteps<Y, Z, R>(
  steps: AsyncGenerator<Y, R>,
  to: (step: Y) => Z,
): AsyncGenerator<Z, R> {
  let step = await steps.next();
  while (step.done !== true) {
    yield to(step.value);
    step = await steps.next();
  }
  return step.value;
}

export const resultOf = async <R>(steps: AsyncGenerator<unknown, R>): Promise<R> => {
  let step = await steps.next();
  while (step.done !== true) step = await steps.next();
  return step.value;
};

/** Of a class only its name stays. */
export type Failure = { name: string; message: string; [field: string]: unknown };

export const failureOf = (error: unknown): Failure => {
  // An error can be one of another realm.
  const { name = 'Error', message = String(error) } = Object(error);
  // Codes are plain; a field that cannot be posted would lose the error itself.
  const plain = Object.entries(Object(error)).filter(([, value]) => Object(value) !== value);
  return { ...Object.fromEntries(plain), name, message };
};

export const errorFrom = (failure: Failure): Error =>
  Object.assign(new Error(failure.message), failure);

export type ToThread =
  | 'next'
  | 'stop'
  | { call: number; value: unknown }
  | { call: number; failure: Failure };

export type FromThread =
  | { value: unknown }
  | { result: unknown }
  | { failure: Failure }
  | { call: number; name: string; args: unknown[] };
