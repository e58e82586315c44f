/** Server-sent events: streams that end with a result, and streams that are followed. */
import { setTimeout as wait } from 'node:timers/promises';
import type { EventSourceMessage } from 'eventsource-parser';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { TOKEN_EXPIRED } from '../audit/live.ts';
import { EVENT_STREAM } from '../shared/http/server/streams.ts';
import { type Client, orFail } from './client.ts';
import { CommandFailed, countOf, note, ServiceUnreachable } from './output.ts';

type Progress = { done: number; total: number; estimated?: boolean };

const LINE_EVERY_MS = 2_000;
const CHANGE_EVERY_MS = 100;
const CLEAR_LINE = '\r\u001b[K';

/** A rebuild makes indexes and compares after it has counted all. */
const leftOf = (done: number, total: number, seconds: number): string => {
  if (done === 0) return '? s left';
  return done >= total ? 'finishing' : `${Math.ceil(((total - done) / done) * seconds)} s left`;
};

/** Progress on stderr: one line that changes in a terminal, in a pipe a line every two seconds. */
export const startProgress = (what: string, first: number) => {
  const startedAtMs = performance.now();
  const isTerminal = process.stderr.isTTY === true;
  let progress: Progress = { done: 0, total: first };
  const show = (isLast = false): void => {
    const { done, total, estimated = false } = progress;
    const seconds = Math.max((performance.now() - startedAtMs) / 1000, 0.001);
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
    const far = `${countOf(done)}/${estimated ? 'about ' : ''}${countOf(total)}`;
    const line = `${what} ${percent}%  ${far}  ${countOf(Math.round(done / seconds))}/s`;
    const text = isLast ? line : `${line}  ${leftOf(done, total, seconds)}`;
    if (isTerminal && !isLast) process.stderr.write(CLEAR_LINE + text);
    else note(text);
  };
  const timer = setInterval(show, isTerminal ? CHANGE_EVERY_MS : LINE_EVERY_MS).unref();
  return {
    update: (now: Progress): void => {
      progress = now;
    },
    stop: (): void => {
      clearInterval(timer);
      if (isTerminal) process.stderr.write(CLEAR_LINE);
      if (progress.done > 0) show(true);
    },
  };
};

export const AS_STREAM = { accept: EVENT_STREAM };

/** The events of a response until it ends or its connection is lost. Throws CommandFailed for an error response. */
async function* serverSentEvents(response: Response): AsyncGenerator<EventSourceMessage> {
  const { body } = await orFail(response);
  if (body === null) return;
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  try {
    yield* events;
  } catch {
    // A caller sees by the missing result that the response was cut off.
  }
}

type ToResult = {
  what: string;
  lost: string;
  failed?: (data: string) => string;
  progressOf?: (data: string) => Progress;
};

/** The result of a stream, whose progress is shown meanwhile. Throws CommandFailed where there is no result. */
export const streamResult = async <T>(
  response: Promise<Response>,
  { what, lost, failed, progressOf = JSON.parse }: ToResult,
): Promise<T> => {
  let progress: ReturnType<typeof startProgress> | undefined;
  try {
    for await (const { event, data } of serverSentEvents(await response)) {
      if (event === 'result') return JSON.parse(data);
      if (event === 'failed' && failed) throw new CommandFailed(failed(data));
      if (event !== 'progress') continue;
      const now = progressOf(data);
      progress ??= startProgress(what, now.total);
      progress.update(now);
    }
  } finally {
    progress?.stop();
  }
  throw new CommandFailed(lost);
};

const BACK_OFF_MS = [500, 1000, 2000, 5000];

type Follower = {
  onOpen?(isFirst: boolean, last: string | undefined): void;
  /** `before` is the id of the event before it; true ends the following. */
  onEvent(event: EventSourceMessage, before: string | undefined): unknown;
};

/** Follows a stream over lost connections. Throws rejections, and every error before it begins. */
export const followStream = async (client: Client, path: string, { onOpen, onEvent }: Follower) => {
  let last: string | undefined;
  let hasBegun = false;
  const follow = async (): Promise<number | undefined> => {
    const response = await client.get(path, {
      ...AS_STREAM,
      ...(last !== undefined && { 'last-event-id': last }),
    });
    // After a connection 503 means a restart of the service. Another rejection would come again.
    if (response.status === 503 && hasBegun)
      return (Number(response.headers.get('retry-after')) || 0) * 1000;
    if (response.ok) onOpen?.(!hasBegun, last);
    hasBegun ||= response.ok;
    for await (const one of serverSentEvents(response)) {
      const before = last;
      last = one.id ?? before;
      if (one.event === TOKEN_EXPIRED)
        note('the token has expired, connecting again with a new one');
      else if (one.event !== 'caught-up' && (await onEvent(one, before)) === true) return undefined;
    }
    return 0;
  };
  for (let attempts = 0; ; attempts += 1) {
    let leastMs = 0;
    try {
      const waitMs = await follow();
      if (waitMs === undefined) return;
      leastMs = waitMs;
      attempts = 0;
    } catch (error) {
      const isRejection = error instanceof CommandFailed && !(error instanceof ServiceUnreachable);
      if (isRejection || !hasBegun) throw error;
    }
    const backOffMs = BACK_OFF_MS[Math.min(attempts, BACK_OFF_MS.length - 1)] ?? 0;
    await wait(Math.max(leastMs, backOffMs));
  }
};
