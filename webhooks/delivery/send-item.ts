/** One attempt at one item: its place among others, its request, and its outcome in the loop's state. */
import type { ControlReads } from '../../shared/event-store/control-stream.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import type { OpenText } from '../../shared/payment/state.ts';
import type { StartTimer } from '../../shared/runtime/back-off.ts';
import { createTurns } from '../../shared/runtime/fair-turns.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { during, SAME_TRACE_MS, sampledPlace, startSpan } from '../../shared/runtime/tracing.ts';
import type { Endpoint } from '../endpoints/endpoints.ts';
import { type Message, messageFor } from '../message.ts';
import { endpointKey, liveSecretNumbers, signedHeaders } from '../signer.ts';
import type { DeliveryStore } from '../store/port.ts';
import { accepted, type Delivery, failed, type Item, passed, turnOf } from './delivery.ts';
import { type Attempt, isFailing } from './delivery-row.ts';
import type { SendOutcome, WebhookSender } from './send.ts';

export type SendDeps = {
  store: ControlReads & Pick<EventStore, 'readAll' | 'end' | 'hashAt' | 'subscribe'>;
  deliveries: DeliveryStore;
  sender: WebhookSender;
  places: ReturnType<typeof createPlaces>;
  secret: string;
  openText: OpenText;
  logger: Logger;
  disable(endpoint: Endpoint, reason: 'GONE' | 'UNREACHABLE'): Promise<void>;
  onAttempt(attempt: CountedAttempt): void;
  nowMs(): number;
  startTimer: StartTimer;
  random(): number;
};

export type SendState = {
  endpoint: Endpoint;
  delivery: Delivery;
  /** Made since the row was saved. */
  attempts: Attempt[];
  lastHeard: { hasResponded: boolean; atMs: number } | undefined;
};

const GONE = 410;

type Sent = SendOutcome & {
  id: string;
  type: string;
  startedMs: number;
  latencyMs: number;
  ours?: 'unreadable';
};

/** `well`: its last request had a response; `doubtful`: it had none, or it is FAILING; `silent`: none of late. */
export type Standing = 'well' | 'silent' | 'doubtful';

const PLACES = 256;
const PLACES_OF = { silent: 128, doubtful: 64 };
const OF_ONE_MAX = 1 / 16;
/** A silent endpoint holds no place for longer (gaps §20). */
const RESPONSE_MS_MAX = { silent: 3_000, doubtful: 15_000, well: 15_000 };
/** For so long a response, or its lack, says something about the next one. */
const SILENT_AFTER_MS = 600_000;

const shared = (places: number) => createTurns(places, places * OF_ONE_MAX);

/** Well endpoints find a place however many others hang. */
export const createPlaces = () => {
  const all = shared(PLACES);
  const parts = { silent: shared(PLACES_OF.silent), doubtful: shared(PLACES_OF.doubtful) };
  return {
    with: <T>(
      standing: Standing,
      merchantId: string,
      signal: AbortSignal,
      request: () => Promise<T>,
    ): Promise<T> => {
      const inAny = () => all.with(merchantId, signal, request);
      return standing === 'well' ? inAny() : parts[standing].with(merchantId, signal, inAny);
    },
  };
};

const paymentOfItem = ({ paymentId, revision }: Item) =>
  paymentId === undefined ? { paymentId: null, revision: null } : { paymentId, revision };

const attemptAt = (
  item: Item,
  { id, type, startedMs, status, error, latencyMs }: Sent,
  outcome: Attempt['outcome'],
  nextAt?: number,
): Attempt => ({
  eventId: id,
  type,
  ...paymentOfItem(item),
  attempt: item.n + 1,
  at: new Date(startedMs).toISOString(),
  status,
  error,
  latencyMs: Math.round(latencyMs),
  nextAt: nextAt === undefined ? null : new Date(nextAt).toISOString(),
  outcome,
});

export type CountedAttempt = Pick<Attempt, 'outcome' | 'latencyMs'>;

/** For `onAttempt`. */
export const countAttempts =
  ({ webhookAttempts, webhookSeconds }: Metrics) =>
  ({ outcome, latencyMs }: CountedAttempt): void => {
    webhookAttempts.inc({ outcome });
    webhookSeconds.observe(latencyMs / 1000);
  };

const record = (state: SendState, attempt: Attempt, { onAttempt }: SendDeps): void => {
  state.attempts.push(attempt);
  onAttempt(attempt);
};

const noteFailure = async (state: SendState, item: Item, sent: Sent, deps: SendDeps) => {
  const { retryAfterMs, status, error, ours } = sent;
  const { endpoint, delivery } = state;
  const { endpointId } = endpoint;
  const after = failed(delivery, item, deps.nowMs(), { retryAfterMs, random: deps.random(), ours });
  state.delivery = after.delivery;
  const isGivenUp = after.nextAt === undefined;
  // A FAILING endpoint gets one request at a time, and any of its messages may be the next.
  const nextAt = isFailing(after.delivery.row) ? undefined : after.nextAt;
  record(state, attemptAt(item, sent, isGivenUp ? 'GIVEN_UP' : 'RETRYING', nextAt), deps);
  // A test is tried once, and its merchant sees the outcome: an operator has nothing to do.
  const level = item.kind === 'test' ? 'info' : 'error';
  if (isGivenUp)
    deps.logger[level](
      { endpointId, eventId: sent.id, ...paymentOfItem(item) },
      'webhook message given up',
    );
  if (!isFailing(delivery.row) && isFailing(after.delivery.row))
    deps.logger.warn(
      { endpointId, status, reason: error },
      'webhook endpoint fails: one request at a time',
    );
  if (endpoint.disabled !== undefined) return;
  if (status === GONE) await deps.disable(endpoint, 'GONE');
  else if (after.isOver) await deps.disable(endpoint, 'UNREACHABLE');
};

const standingOf = ({ delivery, lastHeard }: SendState, nowMs: number): Standing => {
  if (isFailing(delivery.row)) return 'doubtful';
  if (lastHeard === undefined || nowMs - lastHeard.atMs >= SILENT_AFTER_MS) return 'silent';
  return lastHeard.hasResponded ? 'well' : 'doubtful';
};

/** The span of an attempt; one that is made again much later is a trace of its own. */
const traced = (
  { type, traceparent }: Message,
  item: Item,
  atMs: number,
  send: () => Promise<SendOutcome>,
): Promise<SendOutcome> => {
  const place = traceparent === undefined ? undefined : sampledPlace(traceparent);
  if (place === undefined) return send();
  // A resend by hand is no part of the request long ago.
  const isPart = turnOf(item) !== 'single' && atMs - item.since < SAME_TRACE_MS;
  const links = isPart ? [] : [place];
  const attributes = { 'payments.attempt': item.n + 1 };
  const about = { name: `deliver ${type}`, kind: 'CLIENT', links, attributes } as const;
  return during(startSpan(about, isPart ? place : undefined), send, ({ status, error }) => ({
    'http.response.status_code': status ?? undefined,
    'error.type': /^2..$/.test(String(status)) ? undefined : (error ?? String(status)),
  }));
};

const requestFor = async (
  state: SendState,
  item: Item,
  message: Message,
  { sender, places, secret, nowMs }: SendDeps,
  signal: AbortSignal,
): Promise<Sent> => {
  const { id, type, body, traceparent } = message;
  const standing = standingOf(state, nowMs());
  const totalMs = RESPONSE_MS_MAX[standing];
  /** The endpoint, and the time, are those of the moment when there is a place. */
  const send = async () => {
    const startedMs = nowMs();
    const began = performance.now();
    const { url, endpointId } = state.endpoint;
    const numbers = liveSecretNumbers(state.endpoint, startedMs);
    const keys = numbers.map((number) => endpointKey(secret, endpointId, number));
    const signed = signedHeaders(keys, id, startedMs, body);
    const headers = traceparent === undefined ? signed : { ...signed, traceparent };
    const sent = await traced(message, item, startedMs, () =>
      sender.send(url, headers, body, { totalMs, signal }),
    );
    return { ...sent, id, type, startedMs, latencyMs: performance.now() - began };
  };
  const sent = await places.with(standing, state.endpoint.merchantId, signal, send);
  state.lastHeard = { hasResponded: sent.status !== null, atMs: nowMs() };
  return sent;
};

const UNSENT: Omit<Sent, 'startedMs'> = {
  id: '',
  type: 'unreadable',
  ours: 'unreadable',
  latencyMs: 0,
  status: null,
  error: 'EVENT_UNREADABLE',
  retryAfterMs: undefined,
};

/** Throws what the log and an aborted signal throw; then nothing is noted. */
export const sendItem = async (
  state: SendState,
  item: Item,
  deps: SendDeps,
  signal: AbortSignal,
): Promise<void> => {
  const message = await messageFor(deps, item, state.endpoint);
  if (message === 'unwanted') {
    state.delivery = passed(state.delivery, item, deps.nowMs());
    return;
  }
  const sent =
    message === 'unreadable'
      ? { ...UNSENT, startedMs: deps.nowMs() }
      : await requestFor(state, item, message, deps, signal);
  const { status, latencyMs } = sent;
  if (status === null || status < 200 || status >= 300) return noteFailure(state, item, sent, deps);
  state.delivery = accepted(state.delivery, item, deps.nowMs(), latencyMs);
  record(state, attemptAt(item, sent, 'ACCEPTED'), deps);
};
