/** One attempt at one item, whose outcome is noted in the loop's state. */
import type { Logger } from '../../shared/runtime/log.ts';
import { type Attempt, isFailing } from '../../shared/webhooks/delivery-row.ts';
import { type Endpoint, liveSecretNumbers } from '../../shared/webhooks/endpoints.ts';
import type { Message } from '../../shared/webhooks/message.ts';
import { endpointKey, signedHeaders } from '../../shared/webhooks/signer.ts';
import { tracedDelivery } from '../traces.ts';
import { type Delivery, type Item, isTest } from './delivery.ts';
import { type Messages, NoMessage } from './messages.ts';
import { accepted, failed, passed } from './outcomes.ts';
import { type Places, RESPONSE_MS_MAX, SILENT_AFTER_MS, type Standing } from './permits.ts';
import type { Sender, SendOutcome } from './send.ts';

export type SendDeps = {
  messages: Pick<Messages, 'of'>;
  sender: Pick<Sender, 'send'>;
  places: Places;
  secret: string;
  logger: Logger;
  disable(endpoint: Endpoint, reason: 'GONE' | 'UNREACHABLE'): Promise<void>;
  onAttempt(attempt: Attempt): void;
  nowMs(): number;
  random(): number;
};

export type LoopState = {
  endpoint: Endpoint;
  delivery: Delivery;
  attempts: Attempt[];
  changed: boolean;
  lastHeard: { hasResponded: boolean; atMs: number } | undefined;
};

export const setDelivery = (state: LoopState, delivery: Delivery): void => {
  state.delivery = delivery;
  state.changed = true;
};

const GONE = 410;

const isSuccess = ({ status }: SendOutcome): boolean =>
  status !== null && status >= 200 && status < 300;

const paymentOfItem = (item: Item) => {
  const { paymentId, revision } = item.kind === 'single' ? item.single : item;
  return { paymentId: paymentId ?? null, revision: paymentId === undefined ? null : revision };
};

const attemptsBefore = (item: Item): number => {
  if (item.kind === 'unread') return 0;
  return item.kind === 'retry' ? item.n : item.single.n;
};

type Try = { item: Item; message: Pick<Message, 'id'> & { type: string }; startedMs: number };
type Outcome = SendOutcome & { latencyMs: number };

const record = (
  state: LoopState,
  { item, message, startedMs }: Try,
  { status, error, latencyMs }: Outcome,
  rest: Pick<Attempt, 'nextAt' | 'outcome'>,
  { onAttempt }: SendDeps,
): void => {
  const attempt: Attempt = {
    eventId: message.id,
    type: message.type,
    ...paymentOfItem(item),
    attempt: attemptsBefore(item) + 1,
    at: new Date(startedMs).toISOString(),
    status,
    error,
    latencyMs: Math.round(latencyMs),
    ...rest,
  };
  state.attempts.push(attempt);
  onAttempt(attempt);
};

const noteSuccess = (state: LoopState, made: Try, outcome: Outcome, deps: SendDeps): void => {
  setDelivery(state, accepted(state.delivery, made.item, deps.nowMs(), outcome.latencyMs));
  record(state, made, outcome, { nextAt: null, outcome: 'ACCEPTED' }, deps);
};

const noteFailure = async (
  state: LoopState,
  made: Try,
  outcome: Outcome,
  ours: 'unreadable' | undefined,
  deps: SendDeps,
): Promise<void> => {
  const { item, message } = made;
  const { retryAfterMs, status, error } = outcome;
  const { endpoint } = state;
  const { endpointId } = endpoint;
  const was = isFailing(state.delivery.row);
  const failure = { retryAfterMs, random: deps.random(), ours };
  const after = failed(state.delivery, item, deps.nowMs(), failure);
  setDelivery(state, after.delivery);
  const nextAt = after.nextAt === undefined ? null : new Date(after.nextAt).toISOString();
  const isOver = nextAt === null;
  record(state, made, outcome, { nextAt, outcome: isOver ? 'GIVEN_UP' : 'RETRYING' }, deps);
  // A test is tried once, and its merchant sees the outcome: an operator has nothing to do.
  const level = isTest(item) ? 'info' : 'error';
  if (isOver)
    deps.logger[level](
      { endpointId, eventId: message.id, ...paymentOfItem(item) },
      'webhook message given up',
    );
  if (!was && isFailing(after.delivery.row))
    deps.logger.warn(
      { endpointId, status, reason: error },
      'webhook endpoint fails: one request at a time',
    );
  if (endpoint.disabled !== undefined) return;
  if (status === GONE) await deps.disable(endpoint, 'GONE');
  else if (after.isOver) await deps.disable(endpoint, 'UNREACHABLE');
};

const headersOf = (
  { endpoint }: LoopState,
  { id, body, traceparent }: Message,
  nowMs: number,
  secret: string,
): Record<string, string> => {
  const numbers = liveSecretNumbers(endpoint, nowMs);
  const keys = numbers.map((number) => endpointKey(secret, endpoint.endpointId, number));
  const signed = signedHeaders(keys, id, nowMs, body);
  return traceparent === undefined ? signed : { ...signed, traceparent };
};

const standingOf = ({ delivery, lastHeard }: LoopState, nowMs: number): Standing => {
  if (isFailing(delivery.row)) return 'doubtful';
  if (lastHeard === undefined || nowMs - lastHeard.atMs >= SILENT_AFTER_MS) return 'silent';
  return lastHeard.hasResponded ? 'well' : 'doubtful';
};

const requestFor = async (
  state: LoopState,
  item: Item,
  message: Message,
  { sender, places, secret, nowMs }: SendDeps,
  signal: AbortSignal,
): Promise<Outcome & Pick<Try, 'startedMs'>> => {
  const { type, body, traceparent } = message;
  const standing = standingOf(state, nowMs());
  const totalMs = RESPONSE_MS_MAX[standing];
  /** The endpoint, and the time, are those of the moment when there is a place. */
  const send = async () => {
    const startedMs = nowMs();
    const began = performance.now();
    // A resend by hand is no part of the request long ago.
    const ageMs = item.kind === 'single' ? Number.POSITIVE_INFINITY : startedMs - item.atMs;
    const traced = { type, attempt: attemptsBefore(item) + 1, traceparent, ageMs };
    const headers = headersOf(state, message, startedMs, secret);
    const { url } = state.endpoint;
    const sent = await tracedDelivery(traced, () =>
      sender.send(url, headers, body, { totalMs, signal }),
    );
    return { ...sent, startedMs, latencyMs: performance.now() - began };
  };
  const sent = await places.with(standing, state.endpoint.merchantId, signal, send);
  state.lastHeard = { hasResponded: sent.status !== null, atMs: nowMs() };
  return sent;
};

/** Throws what the log and an aborted signal throw; then nothing is noted. */
export const sendItem = async (
  state: LoopState,
  item: Item,
  deps: SendDeps,
  signal: AbortSignal,
): Promise<void> => {
  let message: Message | undefined;
  try {
    message = await deps.messages.of(item, state.endpoint);
  } catch (error) {
    if (!(error instanceof NoMessage)) throw error;
    const unreadable = { id: '', type: 'unreadable' };
    const made = { item, message: unreadable, startedMs: deps.nowMs() };
    const outcome = { status: null, error: error.code, retryAfterMs: undefined, latencyMs: 0 };
    return noteFailure(state, made, outcome, 'unreadable', deps);
  }
  if (message === undefined) return setDelivery(state, passed(state.delivery, item, deps.nowMs()));
  const sent = await requestFor(state, item, message, deps, signal);
  const made = { item, message, startedMs: sent.startedMs };
  if (isSuccess(sent)) noteSuccess(state, made, sent, deps);
  else await noteFailure(state, made, sent, undefined, deps);
};
