import { type BackOff, pause, within } from '../../runtime/back-off.ts';
import type { AppendMetrics } from '../errors.ts';
import { type Call, callOutcomeOf, Overdue, unavailable } from './call-outcome.ts';
import { addressOf, type StoreClient } from './client.ts';
import type { ServerEvent } from './records.ts';

const CALL_TIMEOUT_MS = 5000;
const READ_TRIES_MAX = 2;
const RETRY_AFTER_MS = 100;
// Clients with equal options share a connection, so each has others.
const CLIENTS_MAX = 8;

export type EventStoreDbOptions = {
  /** `esdb://[user:password@]host:port[,host:port…][?tls=false&…]`, or `esdb+discover://…`. */
  url: string;
  logger: {
    debug(details: object, message: string): void;
    warn(details: object, message: string): void;
  };
  metrics?: AppendMetrics;
  /** With repeats: 5 s. */
  callTimeoutMs?: number;
  /** A subscription silent for so long is compared with the log: 10 s. */
  silenceMsMax?: number;
  backOff?: BackOff;
  /** In one read of the log: 1,000. */
  pageEventsMax?: number;
  /** Up to here `head` counts exactly: 1,000. */
  countedEventsMax?: number;
};

/** `stream` is named where the server refuses that one. */
type Limits = { ms?: number; attempts?: number; stream?: string | undefined };

export const swallow = (): undefined => undefined;

function collect(stream: ReturnType<StoreClient['readStream']>): Call<ServerEvent[]> {
  // An error that comes after the end would, without a listener, end the process.
  stream.on('error', swallow);
  const response = stream.toArray().then((all) => all.flatMap(({ event }) => event ?? []));
  // A read that goes on would hold up the client's own end.
  return { response, cancel: () => void stream.cancel().catch(swallow) };
}

export const inTime = <T>(ms: number, work: Promise<T>, signal?: AbortSignal): Promise<T> =>
  within(ms, work, () => new Overdue(`no answer within ${Math.round(ms)} ms`), signal);

/** The first call connects it. Throws as `addressOf`. */
export function connect({ url, logger, callTimeoutMs = CALL_TIMEOUT_MS }: EventStoreDbOptions) {
  const address = addressOf(url);
  const clients = [address.client()];
  let turn = 0;
  let overdueInRow = 0;
  let renewals = 0;
  const closing = new AbortController();
  const closed = closing.signal;

  const current = (): StoreClient => {
    clients[turn] ??= address.client(turn);
    return clients[turn] as StoreClient;
  };

  // After an exceeded deadline the client itself looks for no other connection.
  const overdue = (during: number): void => {
    if (during !== turn || closed.aborted) return;
    overdueInRow += 1;
    if (overdueInRow < 2) return;
    overdueInRow = 0;
    turn = (turn + 1) % CLIENTS_MAX;
    renewals += 1;
    logger.debug({ renewals }, 'two event store calls in a row timed out, using a new client');
  };

  /** Some of the client's calls never end. */
  async function once<T>(ms: number, start: (client: StoreClient) => Call<T>): Promise<T> {
    closed.throwIfAborted();
    const during = turn;
    let call: Call<T> | undefined;
    try {
      call = start(current());
      const value = await inTime(ms, call.response, closed);
      if (during === turn) overdueInRow = 0;
      return value;
    } catch (error) {
      if (error instanceof Overdue) call?.cancel?.();
      if (callOutcomeOf(error) === 'overdue') overdue(during);
      else if (during === turn) overdueInRow = 0;
      throw error;
    }
  }

  /** Undefined for a missing stream. Throws StoreUnavailable, StreamNotWhole. */
  async function readBy<T>(
    start: (client: StoreClient) => Call<T>,
    { ms = callTimeoutMs, attempts = READ_TRIES_MAX, stream }: Limits = {},
  ): Promise<T | undefined> {
    const endsAt = performance.now() + ms;
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(endsAt - performance.now(), start);
      } catch (error) {
        const outcome = callOutcomeOf(error);
        if (outcome === 'missing') return undefined;
        const late = performance.now() + RETRY_AFTER_MS >= endsAt;
        const isFinal = ['refused', 'deleted', 'overdue'].includes(outcome);
        if (attempt >= attempts || late || isFinal) throw unavailable(error, stream);
        await pause(RETRY_AFTER_MS);
      }
    }
  }

  return {
    callTimeoutMs,
    credentials: address.credentials,
    current,
    once,
    readBy,
    read: (stream: string, options: Parameters<StoreClient['readStream']>[1], limits?: Limits) =>
      readBy((client) => collect(client.readStream(stream, options)), { stream, ...limits }),
    isClosed: () => closed.aborted,
    async close(): Promise<void> {
      closing.abort(new Overdue('closed before the server answered'));
      const ending = Promise.all(clients.map((client) => client?.dispose()));
      await inTime(1000, ending).catch(swallow);
    },
  };
}

export type Connection = ReturnType<typeof connect>;
