/**
 * The log: one JSON line per thing that happened, on stdout or in a file. Callers log ids, route
 * templates and codes, never bodies, headers or addresses; redaction and the scrubber are the nets
 * below that rule (gaps §4).
 */
import { openSync } from 'node:fs';
import pino, { type Logger } from 'pino';
import { scrubCardNumbers } from './card-numbers.ts';

export type Log = Logger;
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export type LogOptions = {
  level: LogLevel;
  /** `stdout`, or the path of a file that is appended to and readable by its owner alone. */
  destination: 'stdout' | { file: string };
};

/** What waits for a blocked or full destination; lines beyond it are dropped, not kept in memory. */
const BUFFER_BYTES_MAX = 8 * 1024 * 1024;

/** Lines are written in chunks, for a write costs more than the line: how many bytes, or how late. */
const CHUNK_BYTES = 4096;
const DELAY_MS_MAX = 100;

const UNDER_WAY_MS = 20;

const SECRETS: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'card',
  'number',
  'cvv',
  'token',
  'secret',
  'password',
]);
const DEPTH_MAX = 3;

/**
 * The fields of a line without what is secret by its name. pino's own redaction does the same by
 * paths, but its wildcards cost three times what the rest of the line does.
 */
const redacted = (fields: Record<string, unknown>, depth = 0): Record<string, unknown> => {
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    if (SECRETS.has(key)) kept[key] = '[redacted]';
    else if (typeof value !== 'object' || value === null || key === 'err') kept[key] = value;
    else
      kept[key] =
        depth < DEPTH_MAX ? redacted(value as Record<string, unknown>, depth + 1) : '[deep]';
  }
  return kept;
};

type Described = { type: string; code?: unknown; message: string; cause?: Described };

const CAUSES_MAX = 3;

/** Type, code and message of an error and its causes: its other fields may hold anything. */
const describeError = (error: unknown, depth = 0): Described | undefined => {
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
  const { name, code, message, cause } = error as Error & { code?: unknown };
  const inner = depth < CAUSES_MAX ? describeError(cause, depth + 1) : undefined;
  return {
    type: name,
    ...(code !== undefined && { code }),
    message,
    ...(inner !== undefined && { cause: inner }),
  };
};

/**
 * Opens the log. Lines are written asynchronously; `flush` writes what is left, blocks while it
 * does and is called once, before the process ends. Throws when the file cannot be opened.
 */
export const createLogger = ({
  level,
  destination,
}: LogOptions): { log: Log; flush: () => void } => {
  const dest = destination === 'stdout' ? 1 : openSync(destination.file, 'a', 0o600);
  const stream = pino.destination({
    dest,
    sync: false,
    minLength: CHUNK_BYTES,
    periodicFlush: DELAY_MS_MAX,
    maxLength: BUFFER_BYTES_MAX,
  });
  // A full disk or a closed pipe costs lines, never the service.
  stream.on('error', () => undefined);
  const log = pino(
    {
      level,
      base: null,
      // The default, an epoch in 13 digits, passes the scrubber's check one time in ten.
      timestamp: pino.stdTimeFunctions.isoTime,
      // seeded bug: log-redaction
      formatters: { level: (label) => ({ level: label }), log: redacted },
      serializers: { err: (error: unknown) => describeError(error) ?? 'not an error' },
      // seeded bug: scrubber
      hooks: { streamWrite: scrubCardNumbers },
    },
    stream,
  );
  const flush = (): void => {
    // A write under way is in another thread, out of reach of flushSync: it needs a moment to end.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, UNDER_WAY_MS);
    try {
      stream.flushSync();
    } catch {
      // The destination is gone: there is nowhere left to tell.
    }
  };
  return { log, flush };
};
