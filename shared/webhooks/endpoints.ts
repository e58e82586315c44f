/** The webhook endpoints of a merchant, folded from its stream. Pure. */
import { hash } from 'node:crypto';
import type { RecordedEvent } from '../event-store/port.ts';
import { isWebhookEvent } from '../payment/events.ts';
import { type WebhookEvent, webhookStreamOf } from '../payment/webhook-events.ts';

type DataOf<T extends WebhookEvent['type']> = Extract<WebhookEvent, { type: T }>['data'];

/** So many tests of an endpoint in so many milliseconds: they go out one at a time, and each may hang for 15 s. */
export const TESTS = { max: 4, inMs: 60_000 };

/** One endpoint as its events say. Times are RFC 3339 in UTC. */
export type Endpoint = {
  endpointId: string;
  merchantId: string;
  url: string;
  /** Undefined: all but `payment.created`. */
  eventTypes: readonly string[] | undefined;
  description: string | undefined;
  apiVersion: 'v1';
  createdAt: string;
  updatedAt: string;
  /** When its last tests were requested, `TESTS.max` of them. */
  testedAt: readonly string[];
  /** What was stored after this position is sent; null: from the start of the log. */
  after: string | null;
  /** Of the secret that signs; see `endpointKey`. */
  secretNumber: number;
  /** Until when the secret before it signs as well. */
  oldSecretExpiresAt: string | undefined;
  disabled: { reason: DataOf<'WebhookEndpointDisabled'>['reason']; at: string } | undefined;
};

/** How many endpoints a merchant may have at a time. */
export const ENDPOINTS_MAX = 10;

/** The stream of a merchant's endpoints. */
export const endpointStreamOf = (merchantId: string): string =>
  webhookStreamOf(hash('sha256', merchantId));

/** A stored event of the family. */
export type RecordedWebhookEvent = RecordedEvent<WebhookEvent>;

/** True for an event of the family. */
export const isOfWebhooks = (recorded: RecordedEvent): recorded is RecordedWebhookEvent =>
  isWebhookEvent(recorded.event);

const created = (
  {
    after,
    endpointId,
    merchantId,
    url,
    eventTypes,
    description,
    apiVersion,
  }: DataOf<'WebhookEndpointCreated'>,
  time: string,
): Endpoint => ({
  endpointId,
  merchantId,
  url,
  eventTypes,
  description,
  apiVersion,
  createdAt: time,
  updatedAt: time,
  testedAt: [],
  after: after ?? null,
  secretNumber: 1,
  oldSecretExpiresAt: undefined,
  disabled: undefined,
});

/** What an event changes of an endpoint. */
const changes = (event: WebhookEvent, time: string): Partial<Endpoint> | undefined => {
  switch (event.type) {
    case 'WebhookEndpointChanged': {
      const { url, eventTypes, description } = event.data;
      return {
        ...(url !== undefined && { url }),
        ...(eventTypes !== undefined && { eventTypes }),
        ...(description !== undefined && { description }),
      };
    }
    case 'WebhookEndpointSecretRotated': {
      const { secretNumber, oldExpiresAt } = event.data;
      return { secretNumber, oldSecretExpiresAt: oldExpiresAt };
    }
    case 'WebhookEndpointDisabled':
      return { disabled: { reason: event.data.reason, at: time } };
    case 'WebhookEndpointEnabled':
      return { disabled: undefined };
    default:
      return undefined;
  }
};

/** The endpoints that are not deleted, the oldest first. */
export const foldEndpoints = (events: readonly RecordedEvent[]): Endpoint[] => {
  const endpoints = new Map<string, Endpoint>();
  for (const recorded of events) {
    if (!isOfWebhooks(recorded) || !('endpointId' in recorded.event.data)) continue;
    const { event, time } = recorded;
    const { endpointId } = recorded.event.data;
    if (event.type === 'WebhookEndpointCreated')
      endpoints.set(endpointId, created(event.data, time));
    if (event.type === 'WebhookEndpointDeleted') endpoints.delete(endpointId);
    const before = endpoints.get(endpointId);
    const changed = changes(event, time);
    if (before === undefined) continue;
    if (event.type === 'WebhookTestRequested')
      endpoints.set(endpointId, {
        ...before,
        testedAt: [...before.testedAt, time].slice(-TESTS.max),
      });
    if (changed === undefined) continue;
    endpoints.set(endpointId, { ...before, ...changed, updatedAt: time });
  }
  return [...endpoints.values()];
};

/** The numbers of the secrets that sign now, the newest first. */
export const liveSecretNumbers = (
  { secretNumber, oldSecretExpiresAt }: Pick<Endpoint, 'secretNumber' | 'oldSecretExpiresAt'>,
  nowMs: number,
): number[] =>
  oldSecretExpiresAt !== undefined && Date.parse(oldSecretExpiresAt) > nowMs
    ? [secretNumber, secretNumber - 1]
    : [secretNumber];
