import {
  appendControl,
  type ControlReads,
  readControl,
} from '../../shared/event-store/control-stream.ts';
import { asUnreadable, RevisionConflict } from '../../shared/event-store/errors.ts';
import type { EventContext, EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { type Budget, startBudget } from '../../shared/http/request-budget.ts';
import { isOfSameRequest, isUnderKeyOf, type Recognised } from '../../shared/payment/state.ts';
import {
  identityOf,
  WEBHOOK_MERCHANTS_STREAM,
  type WebhookEvent,
} from '../../shared/payment/webhook-events.ts';
import { againMs, type Decided, decideEndpoint, type EndpointCommand } from './decide.ts';
import { type Endpoint, endpointStreamOf, foldEndpoints, isOfWebhooks } from './endpoints.ts';

type Store = ControlReads & Pick<EventStore, 'append'>;

/** Throws as `readControl` does. */
export const readEndpoints = async (store: ControlReads, merchantId: string) => {
  const stored = await readControl(store, endpointStreamOf(merchantId));
  return { endpoints: foldEndpoints(stored.events), ...stored };
};

/** What cannot be read is returned: other merchants go on (ADR-0220). Throws StoreUnavailable. */
export const readableEndpoints = async (store: ControlReads, merchantId: string) =>
  readEndpoints(store, merchantId).catch(asUnreadable);

const merchantsIn = (events: readonly RecordedEvent[]): string[] => {
  const merchantIds = events.flatMap(({ event }) =>
    event.type === 'WebhookMerchantAdded' ? [event.data.merchantId] : [],
  );
  return [...new Set(merchantIds)];
};

/** Also merchants that had an endpoint once. Throws as `readControl` does. */
export const merchantsWithEndpoints = async (store: ControlReads): Promise<string[]> =>
  merchantsIn((await readControl(store, WEBHOOK_MERCHANTS_STREAM)).events);

/** Once, before the merchant's first endpoint: a crash between leaves a name too many. */
const addMerchant = async (store: Store, merchantId: string, context: EventContext) => {
  const merchants = await readControl(store, WEBHOOK_MERCHANTS_STREAM);
  if (merchantsIn(merchants.events).includes(merchantId)) return;
  const event: WebhookEvent = { type: 'WebhookMerchantAdded', data: { merchantId } };
  await appendControl(store, WEBHOOK_MERCHANTS_STREAM, merchants, [event], context);
};

export type Handled =
  /** Now, or earlier under the key; `endpoint` is right after these events, or a deleted one before them. */
  | { kind: 'stored'; events: RecordedEvent[]; endpoint: Endpoint; isRepeat: boolean }
  | { kind: 'key reused' }
  | { kind: 'too soon'; againMs: number }
  | Exclude<Decided, { kind: 'events' }>;

const endpointAfter = (events: readonly RecordedEvent[], endpointId: string): Endpoint => {
  const endpoint = foldEndpoints(events).find((one) => one.endpointId === endpointId);
  if (endpoint === undefined) throw new Error(`webhook endpoint ${endpointId} is gone`);
  return endpoint;
};

/** Undefined where nothing was stored under the key, and for a request without one. */
const storedUnderKey = (
  events: readonly RecordedEvent[],
  request: Recognised | undefined,
): Handled | undefined => {
  if (request === undefined) return undefined;
  for (const [at, recorded] of events.entries()) {
    if (!isOfWebhooks(recorded) || !('endpointId' in recorded.event.data)) continue;
    const identity = identityOf(recorded.event);
    if (identity === undefined || !isUnderKeyOf({ identity }, request)) continue;
    if (!isOfSameRequest({ identity }, request)) return { kind: 'key reused' };
    const endpoint = endpointAfter(events.slice(0, at + 1), recorded.event.data.endpointId);
    return { kind: 'stored', events: [recorded], endpoint, isRepeat: true };
  }
  return undefined;
};

/** `request`: under an `Idempotency-Key`. */
type EndpointOrder = {
  merchantId: string;
  command: EndpointCommand;
  context: EventContext;
  request?: Recognised | undefined;
};

const handleOnce = async (
  store: Store,
  { merchantId, command, context, request }: EndpointOrder,
): Promise<Handled> => {
  const { endpoints, events: before, end } = await readEndpoints(store, merchantId);
  const decided = decideEndpoint(endpoints, command, request?.identity);
  if (decided.kind === 'unknown endpoint') return decided;
  const earlier = storedUnderKey(before, request);
  if (earlier !== undefined) return earlier;
  if (decided.kind !== 'events') return decided;
  const waitMs = decided.events.length === 0 ? 0 : againMs(command, before, Date.now());
  if (waitMs > 0) return { kind: 'too soon', againMs: waitMs };
  if (before.length === 0) await addMerchant(store, merchantId, context);
  const stream = endpointStreamOf(merchantId);
  const events =
    decided.events.length === 0
      ? []
      : await appendControl(store, stream, { events: before, end }, decided.events, context);
  const { endpointId } = command.kind === 'create' ? command.endpoint : command;
  const shown = command.kind === 'delete' ? before : [...before, ...events];
  return { kind: 'stored', events, endpoint: endpointAfter(shown, endpointId), isRepeat: false };
};

/** For a command that no request waits for. */
const COMMAND_MS_MAX = 10_000;

/** Decides again on a conflict while there is time. Throws as the store does. */
export const handleEndpointCommand = async (
  store: Store,
  order: EndpointOrder,
  time: Pick<Budget, 'leftMs'> = startBudget(COMMAND_MS_MAX),
): Promise<Handled> => {
  for (;;) {
    try {
      return await handleOnce(store, order);
    } catch (error) {
      if (!(error instanceof RevisionConflict) || time.leftMs() === 0) throw error;
    }
  }
};
