/** The messages between the two halves of a thread for scans (scan-thread.ts, scan-worker.ts). */

/** An error on its way between threads: of a class only its name stays. */
export type Failure = { name: string; message: string; fields: Record<string, unknown> };

/** How many values a scan may be ahead of its reader: enough that it does not wait for a busy event loop. */
export const AHEAD = 4;

/** To the thread: a scan to begin, one more value that may be made, an end, and the reply to a call. */
export type ToThread = { scan: number } & (
  | { module: string; args: unknown; ahead: number }
  | { more: true }
  | { stop: true }
  | { call: number; value: unknown }
  | { call: number; failure: Failure }
);

/** From the thread. */
export type FromThread = { scan: number } & (
  | { value: unknown }
  | { result: unknown }
  | { failure: Failure }
  | { call: number; name: string; args: unknown[] }
);

/** The form in which an error is posted. */
export const failureOf = (error: unknown): Failure => {
  // Not `instanceof Error`: an error can be one of another realm.
  const { name = 'Error', message = String(error) } = Object(error);
  // Codes are plain; a field that cannot be posted would lose the error itself.
  const plain = Object.entries(Object(error)).filter(([, value]) => Object(value) !== value);
  return { name, message, fields: Object.fromEntries(plain) };
};

/** The error that was posted. */
export const errorFrom = ({ name, message, fields }: Failure): Error =>
  Object.assign(new Error(message), fields, { name });
