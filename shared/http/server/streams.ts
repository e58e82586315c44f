/** Streams: read as fast as their client reads, cut off where it stalls, ended at a close. */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { within } from '../../runtime/back-off.ts';
import { onError } from '../../runtime/error-text.ts';
import { createTurns } from '../../runtime/fair-turns.ts';
import type {} from './app.ts';
import { whenGone } from './shares.ts';

export type TextSource = (signal: AbortSignal) => AsyncGenerator<string>;

/** `ownMax`: of one merchant, because a stream has no end of its own. */
const LIMITS = { openMax: 32, ownMax: 4, keepAliveMs: 15_000, stalledMs: 30_000 };
const BUFFER_BYTES = 64 * 1024;

class Silent extends Error {}
const isSilent = onError(Silent, () => undefined);

async function* withKeepAlive(
  texts: AsyncGenerator<string>,
  keepAlive: string,
  { keepAliveMs, stalledMs }: typeof LIMITS,
  leave: () => void,
): AsyncGenerator<string> {
  const watched = function* (text: string): Generator<string> {
    const timer = setTimeout(leave, stalledMs);
    try {
      yield text;
    } finally {
      clearTimeout(timer);
    }
  };
  let next = texts.next();
  while (true) {
    const got = await within(keepAliveMs, next, () => new Silent()).catch(isSilent);
    if (got === undefined) {
      if (keepAlive !== '') yield* watched(keepAlive);
      continue;
    }
    if (got.done === true) return;
    yield* watched(got.value);
    next = texts.next();
  }
}

export const createStreams = (app: FastifyInstance, limits = LIMITS) => {
  const places = createTurns(limits.openMax, limits.ownMax);
  const open = new Set<() => void>();
  app.addHook('preClose', (done) => {
    for (const leave of open) leave();
    done();
  });
  return {
    /** Takes a place until the response ends; false where none is left, also for this merchant. */
    take: ({ request, raw }: FastifyReply): boolean => {
      const { merchantId = '' } = request.principal ?? {};
      if (app.lifecycle.unread.isFull(merchantId) || !places.take(merchantId)) return false;
      whenGone(raw, () => places.giveBack(merchantId));
      return true;
    },
    /** Sends what the source yields until it is aborted; events are kept alive while that is silent. */
    send: (reply: FastifyReply, type: string, source: TextSource): FastifyReply => {
      const abort = new AbortController();
      let body: Readable | undefined;
      const leave = (): void => abort.abort();
      const cutOff = (): void => {
        leave();
        body?.destroy();
      };
      open.add(leave);
      whenGone(reply.raw, () => {
        open.delete(leave);
        leave();
      });
      const whole = async function* (): AsyncGenerator<string> {
        try {
          yield* source(abort.signal);
        } catch (error) {
          // The status has been sent, so only the log can say why the connection ends.
          const { raw, request } = reply;
          if (raw.headersSent && !abort.signal.aborted) app.logFault(request, error);
          throw error;
        }
      };
      const texts = withKeepAlive(whole(), type === EVENT_STREAM ? KEEP_ALIVE : '', limits, cutOff);
      body = Readable.from(texts, { objectMode: false, highWaterMark: BUFFER_BYTES });
      return reply.type(type).send(body);
    },
  };
};

export type Streams = ReturnType<typeof createStreams>;

export const EVENT_STREAM = 'text/event-stream';
export const NDJSON = 'application/x-ndjson';

export const accepts = ({ request }: FastifyReply, type: string): boolean =>
  request.headers.accept?.toLowerCase().includes(type) === true;
export const KEEP_ALIVE = ': keep-alive\n\n';

export const serverSent = (event: string, data: unknown, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
