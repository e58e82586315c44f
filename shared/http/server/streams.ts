/**
 * Responses that go on for a while: server-sent events and exports. Only what the client takes is
 * read, so a slow one costs no memory; one that takes nothing for a while is let go. They end at
 * once when the server closes, so that no shutdown waits for them.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type {} from './app.ts';
import { whenGone } from './unread.ts';

/** Makes the texts of a response until `signal` is aborted. */
export type Source = (signal: AbortSignal) => AsyncGenerator<string>;

export type Streams = {
  /**
   * Takes a place for this response, until it has ended; false where all are taken, or all that one
   * merchant may have, and where too many other responses are not read (unread.ts).
   */
  take(reply: FastifyReply): boolean;
  /** Responds with what the source makes. A keep-alive is sent where it is silent for a while. */
  send(reply: FastifyReply, type: string, source: Source, keepAlive?: string): FastifyReply;
};

export type StreamLimits = {
  openMax: number;
  /** Of one merchant; whoever sees all merchants is not counted. */
  ownMax: number;
  keepAliveMs: number;
  stalledMs: number;
};

const LIMITS: StreamLimits = { openMax: 32, ownMax: 8, keepAliveMs: 15_000, stalledMs: 30_000 };
const BUFFER_BYTES = 64 * 1024;

const SILENT = Symbol('silent');

/** The next thing, or SILENT when it takes longer than `ms`. */
const within = async <T>(next: Promise<T>, ms: number): Promise<T | typeof SILENT> => {
  const { promise, resolve } = Promise.withResolvers<typeof SILENT>();
  const timer = setTimeout(() => resolve(SILENT), ms);
  return Promise.race([next, promise]).finally(() => clearTimeout(timer));
};

async function* withKeepAlive(
  texts: AsyncGenerator<string>,
  keepAlive: string,
  { keepAliveMs, stalledMs }: StreamLimits,
  leave: () => void,
): AsyncGenerator<string> {
  // The generator goes on as soon as the client has room for more.
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
    const got = await within(next, keepAliveMs);
    if (got === SILENT) {
      if (keepAlive !== '') yield* watched(keepAlive);
      continue;
    }
    if (got.done === true) return;
    yield* watched(got.value);
    next = texts.next();
  }
}

/** Makes the streams of one server; call it before the server listens. */
export const createStreams = (app: FastifyInstance, limits: StreamLimits = LIMITS): Streams => {
  const open = new Map<FastifyReply, { merchantId: string | undefined; leave: () => void }>();
  app.addHook('preClose', (done) => {
    for (const { leave } of open.values()) leave();
    done();
  });
  const isFull = (merchantId: string | undefined): boolean => {
    if (open.size >= limits.openMax || app.lifecycle.unread.isFull(merchantId)) return true;
    const own = [...open.values()].filter((one) => one.merchantId === merchantId);
    return merchantId !== '*' && own.length >= limits.ownMax;
  };
  const enter = (reply: FastifyReply, leave: () => void): void => {
    // Also comes when the client has left, and then before the source makes more.
    if (!open.has(reply)) whenGone(reply.raw, () => open.delete(reply));
    open.set(reply, { merchantId: reply.request.principal?.merchantId, leave });
  };
  return {
    take: (reply) => {
      if (isFull(reply.request.principal?.merchantId)) return false;
      enter(reply, () => undefined);
      return true;
    },
    send: (reply, type, source, keepAlive = '') => {
      const abort = new AbortController();
      let body: Readable | undefined;
      const leave = (): void => abort.abort();
      const cutOff = (): void => {
        leave();
        body?.destroy();
      };
      enter(reply, leave);
      whenGone(reply.raw, leave);
      const whole = async function* (): AsyncGenerator<string> {
        try {
          yield* source(abort.signal);
        } catch (error) {
          // The client has its status and sees a connection that ends: the log alone can say why.
          const { raw, request } = reply;
          if (raw.headersSent && !abort.signal.aborted) app.logFault(request, error);
          throw error;
        }
      };
      const texts = withKeepAlive(whole(), keepAlive, limits, cutOff);
      body = Readable.from(texts, { objectMode: false, highWaterMark: BUFFER_BYTES });
      return reply.type(type).send(body);
    },
  };
};

export const EVENT_STREAM = 'text/event-stream';
export const NDJSON = 'application/x-ndjson';

/** Whether the client accepts this type rather than, say, JSON. */
export const accepts = ({ request }: FastifyReply, type: string): boolean =>
  request.headers.accept?.toLowerCase().includes(type) === true;
export const KEEP_ALIVE = ': keep-alive\n\n';

/** One server-sent event; `data` is written as JSON, which has no line breaks. */
export const serverSent = (event: string, data: unknown, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
