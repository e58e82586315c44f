/** Server-sent events: streams that end with a result, and streams that are followed. */
import { setTimeout as wait } from 'node:timers/promises';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { type Client, orFail } from './client.ts';
import { CommandFailed, ServiceUnreachable } from './command-failed.ts';
import { type Progress, startProgress } from './progress-bar.ts';

type ServerSentEvent = { event: string | undefined; id: string | undefined; data: string };

/** The events of a response until it ends or its connection is lost. Throws CommandFailed for an error response. */
export async function* serverSentEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  const { body } = await orFail(response);
  if (body === null) return;
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  try {
    for await (const { event, id, data } of events) yield { event, id, data };
  } catch {
    // A caller sees by the missing result that the response was cut off.
  }
}

type ToResult = {
  /** Names the progress. */
  what: string;
  /** For a connection that is lost before the result. */
  lost: string;
  /** The message for the event `failed`. */
  failed?: (data: string) => string;
  /** From the data of the event `progress`. */
  progressOf?: (data: string) => { done: number; total: number; estimated?: boolean };
};

/** The result of a stream, whose progress is shown meanwhile. Throws CommandFailed where there is no result. */
export const resultOf = async <T>(
  response: Response,
  { what, lost, failed, progressOf }: ToResult,
): Promise<T> => {
  let progress: Progress | undefined;
  try {
    for await (const { event, data } of serverSentEvents(response)) {
      if (event === 'result') return JSON.parse(data);
      if (event === 'failed' && failed) throw new CommandFailed(failed(data));
      if (event !== 'progress' || !progressOf) continue;
      const { done, ...total } = progressOf(data);
      progress ??= startProgress(what, total.total);
      progress.update(done, total);
    }
  } finally {
    progress?.stop();
  }
  throw new CommandFailed(lost);
};

const BACK_OFF_MS = [500, 1000, 2000, 5000];

/** The id of the last event, and whether the stream has begun once. */
export type Followed = { last: string | undefined; connected: boolean };

/** Requests the stream after the last event. */
export const streamAfter = (client: Client, path: string, { last }: Followed): Promise<Response> =>
  client.get(path, {
    accept: 'text/event-stream',
    ...(last !== undefined && { 'last-event-id': last }),
  });

/** The wait that a rejection asks for, in milliseconds. */
export const retryAfterMs = ({ headers }: Response): number =>
  (Number(headers.get('retry-after')) || 0) * 1000;

/**
 * Calls `follow` after each end of its connection, over restarts of the service. `follow` resolves with the
 * least wait in milliseconds; undefined ends it. Throws rejections, and everything until the stream has begun.
 */
export const followAgain = async (
  followed: Followed,
  follow: () => Promise<number | undefined>,
): Promise<void> => {
  for (let attempts = 0; ; attempts += 1) {
    let leastMs = 0;
    try {
      const waitMs = await follow();
      if (waitMs === undefined) return;
      leastMs = waitMs;
      attempts = 0;
    } catch (error) {
      const isRejection = error instanceof CommandFailed && !(error instanceof ServiceUnreachable);
      if (isRejection || !followed.connected) throw error;
    }
    const backOffMs = BACK_OFF_MS[Math.min(attempts, BACK_OFF_MS.length - 1)] ?? 0;
    await wait(Math.max(leastMs, backOffMs));
  }
};
