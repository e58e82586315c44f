/** The webhook endpoints of a merchant, folded from its stream. */
import { hash } from 'node:crypto';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { isWebhookEvent } from '../../shared/payment/events.ts';
import { WEBHOOK_STREAMS, type WebhookEvent } from '../../shared/payment/webhook-events.ts';

export type DataOf<T extends WebhookEvent['type']> = Extract<WebhookEvent, { type: T }>['data'];

/** They go out one at a time, and each may hang for 15 s. */
export const TESTS = { max: 4, inMs: 60_000 };
/** Of a merchant's endpoints: each is an event that is kept for ever. */
export const CHANGES = { max: 20, inMs: 60_000 };

/** Times are RFC 3339 in UTC. */
export type Endpoint = Omit<DataOf<'WebhookEndpointCreated'>, 'after' | 'identity'> & {
  createdAt: string;
  updatedAt: string;
  /** Events after this position are sent; null: from the start of the log. */
  after: string | null;
  /** Of the secret that signs; see `endpointKey`. */
  secretNumber: number;
  /** The secret before it signs as well until then. */
  oldSecretExpiresAt: string | undefined;
  disabled: { reason: DataOf<'WebhookEndpointDisabled'>['reason']; at: string } | undefined;
};

/** Of one merchant, at a time. */
export const ENDPOINTS_MAX = 10;

/** By the SHA-256 of the merchant's id, in hex. */
export const endpointStreamOf = (merchantId: string): string =>
  WEBHOOK_STREAMS + hash('sha256', merchantId);

export type RecordedWebhookEvent = RecordedEvent<WebhookEvent>;

export const isOfWebhooks = (recorded: RecordedEvent): recorded is RecordedWebhookEvent =>
  isWebhookEvent(recorded.event);

const created = (
  { after, identity: _, ...data }: DataOf<'WebhookEndpointCreated'>,
  time: string,
): Endpoint => ({
  ...data,
  createdAt: time,
  updatedAt: time,
  after: after ?? null,
  secretNumber: 1,
  oldSecretExpiresAt: undefined,
  disabled: undefined,
});

const after = (before: Endpoint, event: WebhookEvent, time: string): Endpoint => {
  const updated = { ...before, updatedAt: time };
  switch (event.type) {
    case 'WebhookEndpointChanged': {
      const { url = before.url, ...changed } = event.data;
      return { ...updated, ...changed, url };
    }
    case 'WebhookEndpointSecretRotated': {
      const { secretNumber, oldExpiresAt } = event.data;
      return { ...updated, secretNumber, oldSecretExpiresAt: oldExpiresAt };
    }
    case 'WebhookEndpointDisabled':
      return { ...updated, disabled: { reason: event.data.reason, at: time } };
    case 'WebhookEndpointEnabled':
      return { ...updated, disabled: undefined };
    default:
      return before;
  }
};

/** The endpoints that are not deleted, the oldest first. */
export const foldEndpoints = (events: readonly RecordedEvent[]): Endpoint[] => {
  const endpoints = new Map<string, Endpoint>();
  for (const recorded of events) {
    if (!isOfWebhooks(recorded) || !('endpointId' in recorded.event.data)) continue;
    const { event, time } = recorded;
    const { endpointId } = recorded.event.data;
    const before = endpoints.get(endpointId);
    if (event.type === 'WebhookEndpointCreated')
      endpoints.set(endpointId, created(event.data, time));
    else if (event.type === 'WebhookEndpointDeleted') endpoints.delete(endpointId);
    else if (before !== undefined) endpoints.set(endpointId, after(before, event, time));
  }
  return [...endpoints.values()];
};
