/**
 * One JSON line for each occurrence: ids, route templates and codes, never bodies, headers or
 * addresses. Redaction and the card scrubber protect where code breaks that rule (gaps §4).
 */
import fs from 'node:fs';
import pino, { type Logger as PinoLogger } from 'pino';
import { scrubCardNumbers } from './card-numbers.ts';
import { withoutControlSigns } from './json.ts';
import { currentPlace } from './tracing.ts';

export type Log = PinoLogger;

type LogOptions = {
  level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  destination: 'stdout' | { file: string };
};

/** While the destination is blocked or full; further lines are dropped. */
const BUFFER_LENGTH_MAX = 8 * 1024 * 1024;

/** A write costs more than many lines: at this size or after this delay. */
const CHUNK_LENGTH = 64_000;
const DELAY_MS_MAX = 100;

const WRITE_IN_FLIGHT_MS = 20;

/** For a reader of stdout that does not read. */
const LAST_LINES_MS = 300;
const RETRY_MS = 20;

/** Stops this thread: at the exit nothing else can wait. */
const wait = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

const SECRETS = ['authorization', 'cookie', 'card', 'number', 'cvv', 'token', 'secret', 'password'];
const DEPTH_MAX = 3;

/** pino's wildcards cost three times the rest of the line. */
const redacted = (fields: Record<string, unknown>, depth = 0): Record<string, unknown> => {
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    if (SECRETS.includes(key)) kept[key] = '[redacted]';
    else if (typeof value !== 'object' || value === null || key === 'err') kept[key] = value;
    else if (depth === DEPTH_MAX) kept[key] = '[deep]';
    else kept[key] = redacted(value as Record<string, unknown>, depth + 1);
  }
  return kept;
};

type Described = { type: string; code: unknown; message: string; cause: Described | undefined };

const CAUSES_MAX = 3;

const describeError = (error: unknown, depth = 0): Described | undefined => {
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
  const { name, code, message, cause } = error as Error & { code?: unknown };
  const inner = depth < CAUSES_MAX ? describeError(cause, depth + 1) : undefined;
  return { type: name, code, message, cause: inner };
};

const FRAMES_MAX = 30;

/** Without the message; frames name our sources, and no data. */
export const framesOf = (error: unknown): string[] => {
  if (!(error instanceof Error)) return [];
  const head = `${error.name}: ${error.message}`;
  const { stack = '' } = error;
  const frames = stack.startsWith(head) ? stack.slice(head.length) : stack;
  const lines = frames.split('\n').map((line) => line.trim());
  return lines.filter((line) => line.startsWith('at ')).slice(0, FRAMES_MAX);
};

const EMPTY = Buffer.alloc(0);
const codeOf = (error: unknown): unknown => Object(error).code;

/** Never ends or holds up the process: pino's flushSync would retry a full disk for ever. */
const openDestination = (fd: number) => {
  let lines = '';
  /** Of the lines before, what is not written yet. */
  let rest: Buffer = EMPTY;
  let isWriting = false;
  let isGone = false;

  const next = (): Buffer => {
    if (rest.length === 0) {
      rest = Buffer.from(lines);
      lines = '';
    }
    return rest;
  };
  const giveUp = (): void => {
    isGone = true;
    lines = '';
    rest = EMPTY;
  };
  const startWrite = (): void => {
    if (isWriting || next().length === 0) return;
    isWriting = true;
    const bytes = rest;
    fs.write(fd, bytes, (error, writtenBytes) => {
      isWriting = false;
      // Else it was flushed meanwhile.
      if (rest === bytes) rest = bytes.subarray(writtenBytes);
      // The pipe has no reader. A full pipe or disk is retried after the delay.
      if (codeOf(error) === 'EPIPE') giveUp();
      else if (error === null && (rest.length > 0 || lines.length >= CHUNK_LENGTH)) startWrite();
    });
  };
  setInterval(startWrite, DELAY_MS_MAX).unref();

  return {
    write: (line: string): void => {
      if (isGone || lines.length + rest.length + line.length > BUFFER_LENGTH_MAX) return;
      lines += line;
      if (lines.length >= CHUNK_LENGTH && rest.length === 0) startWrite();
    },
    /** Lines that are not taken in LAST_LINES_MS are lost. pino calls it after a fatal line. */
    flushSync: (): void => {
      if (isWriting) {
        // It runs in another thread and cannot be awaited.
        wait(WRITE_IN_FLIGHT_MS);
        rest = EMPTY;
      }
      const lastTryMs = performance.now() + LAST_LINES_MS;
      while (next().length > 0) {
        try {
          rest = rest.subarray(fs.writeSync(fd, rest));
        } catch (error) {
          // EAGAIN is a full pipe; any other error has no place to go.
          if (codeOf(error) !== 'EAGAIN' || performance.now() >= lastTryMs) giveUp();
          else wait(RETRY_MS);
        }
      }
    },
  };
};

const safe = (text: string): string => withoutControlSigns(scrubCardNumbers(text));

const lastTime = { ms: 0, text: '' };

/** Lines of one millisecond share its text. */
const isoTime = (): string => {
  const ms = Date.now();
  if (ms !== lastTime.ms) Object.assign(lastTime, { ms, text: new Date(ms).toISOString() });
  return lastTime.text;
};

const traceOfWork = (): object => {
  const place = currentPlace();
  return place === undefined ? {} : { trace_id: place.traceId };
};

const destinations = new WeakMap<Log, { write(line: string): void }>();

/** As `log.info(fields, 'request')`, which is a third of a GET's CPU time; for plain fields without secrets. */
export const logRequest = (log: Log, fields: object): void => {
  const lines = destinations.get(log);
  if (lines === undefined) log.info(fields, 'request');
  else {
    const rest = safe(JSON.stringify(fields).slice(1, -1));
    lines.write(`{"level":"info","time":"${isoTime()}",${rest},"msg":"request"}\n`);
  }
};

/** Throws when the file cannot be opened. Call `flush` once, at the end. */
export const createLogger = (options: LogOptions): { log: Log; flush: () => void } => {
  const { level, destination } = options;
  const fd = destination === 'stdout' ? 1 : fs.openSync(destination.file, 'a', 0o600);
  const lines = openDestination(fd);
  const log = pino(
    {
      level,
      base: null,
      mixin: traceOfWork,
      // The default time has 13 digits: one in ten passes the scrubber's Luhn check.
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redacted },
      serializers: { err: (error: unknown) => describeError(error) ?? 'not an error' },
      hooks: { streamWrite: safe },
    },
    lines,
  );
  if (log.isLevelEnabled('info')) destinations.set(log, lines);
  return { log, flush: lines.flushSync };
};

export type Logger = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};
