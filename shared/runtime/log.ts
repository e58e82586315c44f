/**
 * The log: one JSON line for each occurrence, on stdout or in a file. Code logs ids, route templates
 * and codes, never bodies, headers or addresses. Redaction by field name and the card number
 * scrubber are a second protection where code breaks that rule (gaps §4).
 */
import fs from 'node:fs';
import pino, { type Logger } from 'pino';
import { scrubCardNumbers } from './card-numbers.ts';
import { withoutControlSigns } from './control-signs.ts';

/** The log of a process, as createLogger opens it. */
export type Log = Logger & {
  /**
   * A line of level info from texts and numbers under names that hold no secrets. It is the line that
   * `info` writes, for a fraction of the work: one is written for each request.
   */
  flat(fields: Readonly<Record<string, string | number | undefined>>, message: string): void;
};
type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

type LogOptions = {
  level: LogLevel;
  /** `stdout`, or a file to append to; it is made with mode 0600. */
  destination: 'stdout' | { file: string };
  /** Fields of every line that is written while this is so, such as the trace of the work. */
  also?: (() => object) | undefined;
};

/** Kept in memory while the destination is blocked or full; further lines are dropped. */
const BUFFER_BYTES_MAX = 8 * 1024 * 1024;

/** A write costs more than making many lines, so lines are written at this size or after this delay. */
const CHUNK_BYTES = 64_000;
const DELAY_MS_MAX = 100;

const WRITE_IN_FLIGHT_MS = 20;

/** How long the last lines wait for a reader of stdout that does not read; it holds up the exit. */
const LAST_LINES_MS = 300;
const RETRY_MS = 20;

/** Stops this thread: at the exit nothing else can wait. */
const wait = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

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
 * The fields of a line, with the values of secret names replaced. pino's own redaction does the same
 * by paths, but its wildcards cost three times as much as the rest of the line.
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

/** Type, code and message of an error and its causes. Other fields may hold secrets: left out. */
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

const FRAMES_MAX = 30;

/**
 * Where an error was thrown: the frames of its stack without its message, which may have lines of its
 * own. Frames name our sources and functions, and no data.
 */
export const framesOf = (error: unknown): string[] => {
  if (!(error instanceof Error)) return [];
  const head = `${error.name}: ${error.message}`;
  const { stack = '' } = error;
  const frames = stack.startsWith(head) ? stack.slice(head.length) : stack;
  const lines = frames.split('\n').map((line) => line.trim());
  return lines.filter((line) => line.startsWith('at ')).slice(0, FRAMES_MAX);
};

const lastTime = { ms: 0, text: '' };

/** The time as of now: lines of the same millisecond share its text. */
const isoTime = (): string => {
  const nowMs = Date.now();
  if (nowMs !== lastTime.ms) {
    lastTime.ms = nowMs;
    lastTime.text = new Date(nowMs).toISOString();
  }
  return lastTime.text;
};

type Destination = {
  write(text: string): void;
  flush(): void;
  /** Writes what is left. What nobody takes in LAST_LINES_MS is lost. */
  flushSync(): void;
};

const codeOf = (error: unknown): unknown => Object(error).code;

/**
 * The destination of a log, which never ends the process and never keeps it from ending. Not pino's own:
 * at the exit that tries a full disk again without an end.
 */
const openDestination = (fd: number): Destination => {
  let texts: Buffer[] = [];
  let heldBytes = 0;
  let isWriting = false;
  let isGone = false;
  const giveUp = (): void => {
    isGone = true;
    texts = [];
  };
  /** Keeps what of a text has not been written, before all others. */
  const keepRest = (text: Buffer, writtenBytes: number): void => {
    heldBytes -= writtenBytes;
    if (writtenBytes < text.length) texts.unshift(text.subarray(writtenBytes));
  };
  const writeNext = (): void => {
    const text = isWriting ? undefined : texts.shift();
    if (text === undefined) return;
    isWriting = true;
    fs.write(fd, text, (error, writtenBytes) => {
      isWriting = false;
      if (isGone) return;
      keepRest(text, writtenBytes);
      if (error === null) writeNext();
      // Nobody reads the pipe any more. A full pipe or disk is tried again with the next flush.
      else if (codeOf(error) === 'EPIPE') giveUp();
    });
  };
  return {
    write: (text) => {
      const bytes = Buffer.from(text);
      if (isGone || heldBytes + bytes.length > BUFFER_BYTES_MAX) return;
      heldBytes += bytes.length;
      texts.push(bytes);
      if (bytes.length >= CHUNK_BYTES) writeNext();
    },
    flush: writeNext,
    flushSync: () => {
      const lastTryMs = performance.now() + LAST_LINES_MS;
      for (let text = texts.shift(); text !== undefined; text = texts.shift()) {
        try {
          keepRest(text, fs.writeSync(fd, text));
        } catch (error) {
          // EAGAIN is a pipe that is full. There is nowhere to report any other error.
          if (codeOf(error) !== 'EAGAIN' || performance.now() >= lastTryMs) giveUp();
          else {
            keepRest(text, 0);
            wait(RETRY_MS);
          }
        }
      }
    },
  };
};

/** Joins lines before the destination gets them, for which each text is a buffer and a write. */
const joinLines = (file: Destination) => {
  let lines = '';
  const handOver = (): void => {
    const joined = lines;
    lines = '';
    if (joined !== '') file.write(joined);
  };
  const timer = setInterval(() => {
    handOver();
    file.flush();
  }, DELAY_MS_MAX);
  timer.unref();
  const write = (line: string): void => {
    lines += line;
    if (lines.length >= CHUNK_BYTES) handOver();
  };
  /** pino calls it after a line of level fatal. */
  const flushSync = (): void => {
    handOver();
    file.flushSync();
  };
  return { write, handOver, flushSync };
};

/**
 * Opens the log. Lines are written asynchronously; `flush` writes the rest synchronously and is
 * called once, before the process ends. Throws when the file cannot be opened.
 */
export const createLogger = ({
  level,
  destination,
  also,
}: LogOptions): { log: Log; flush: () => void } => {
  const dest = destination === 'stdout' ? 1 : fs.openSync(destination.file, 'a', 0o600);
  const lines = joinLines(openDestination(dest));
  const safe = (line: string): string => withoutControlSigns(scrubCardNumbers(line));
  const own = pino(
    {
      level,
      base: null,
      ...(also && { mixin: also }),
      // The default time has 13 digits, and one in ten of those passes the scrubber's Luhn check.
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redacted },
      serializers: { err: (error: unknown) => describeError(error) ?? 'not an error' },
      hooks: { streamWrite: safe },
    },
    lines,
  );
  const flat: Log['flat'] = (fields, msg) => {
    if (!own.isLevelEnabled('info')) return;
    // The time is not looked at: it is no card number, its letter ends a run, and its digits beside the
    // signs around them would have each line looked at sign by sign.
    const time = isoTime();
    const rest = safe(JSON.stringify({ ...fields, msg }));
    lines.write(`{"level":"info","time":"${time}",${rest.slice(1)}\n`);
  };
  const log = Object.assign(own, { flat });
  const flush = (): void => {
    lines.handOver();
    // A write in flight runs in another thread, and flushSync cannot wait for it: give it a moment.
    wait(WRITE_IN_FLIGHT_MS);
    lines.flushSync();
  };
  return { log, flush };
};
