/** The rules of a merchant's webhook endpoints. Pure: clock, ids and positions are given. */
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import type { RequestIdentity } from '../../shared/payment/fields.ts';
import type { WebhookEvent } from '../../shared/payment/webhook-events.ts';
import { CHANGES, type DataOf, ENDPOINTS_MAX, type Endpoint, TESTS } from './endpoints.ts';

/** `end` is the end of the log just before. */
type ChangeCommand = DataOf<'WebhookEndpointChanged'> & {
  kind: 'change';
  status?: 'ENABLED' | 'DISABLED' | undefined;
  resumeFrom?: 'checkpoint' | 'now' | undefined;
  end: string | null;
};

export type EndpointCommand =
  | { kind: 'create'; endpoint: DataOf<'WebhookEndpointCreated'> }
  | ChangeCommand
  | { kind: 'rotate'; endpointId: string; oldExpiresAt: string }
  | ({ kind: 'disable' } & DataOf<'WebhookEndpointDisabled'>)
  | ({ kind: 'delete' } & DataOf<'WebhookEndpointDeleted'>)
  | { kind: 'test'; endpointId: string }
  | ({ kind: 'resend' } & DataOf<'WebhookResendRequested'>);

/** No events where nothing changes. */
export type Decided =
  | { kind: 'events'; events: WebhookEvent[] }
  | { kind: 'unknown endpoint' }
  | { kind: 'rejected'; why: string };

const decided = (...events: WebhookEvent[]): Decided => ({ kind: 'events', events });
const rejected = (why: string): Decided => ({ kind: 'rejected', why });

const statusEvents = (
  { endpointId, disabled }: Endpoint,
  { status, resumeFrom = 'checkpoint', end }: ChangeCommand,
): WebhookEvent[] => {
  if (status === 'DISABLED' && disabled !== undefined) return [];
  if (status === 'DISABLED')
    return [{ type: 'WebhookEndpointDisabled', data: { endpointId, reason: 'REQUESTED' } }];
  if ((status !== 'ENABLED' || disabled === undefined) && resumeFrom === 'checkpoint') return [];
  const after = resumeFrom === 'now' ? (end ?? undefined) : undefined;
  return [{ type: 'WebhookEndpointEnabled', data: { endpointId, resumeFrom, after } }];
};

const changed = (endpoint: Endpoint, command: ChangeCommand): Decided => {
  const { endpointId, url, eventTypes, description, status, resumeFrom } = command;
  if (resumeFrom === 'now' && status !== 'ENABLED')
    return rejected('resumeFrom now needs status ENABLED');
  const fields = {
    ...(url !== undefined && { url }),
    ...(eventTypes !== undefined && { eventTypes }),
    ...(description !== undefined && { description }),
  };
  const events = statusEvents(endpoint, command);
  if (Object.keys(fields).length === 0) return decided(...events);
  return decided({ type: 'WebhookEndpointChanged', data: { endpointId, ...fields } }, ...events);
};

/** Ms to wait by these events. A deletion, the service's disabling or a clock set back over `inMs`: 0. */
export const againMs = (
  command: EndpointCommand,
  events: readonly Pick<RecordedEvent, 'event' | 'time'>[],
  nowMs: number,
): number => {
  const { kind } = command;
  if (kind === 'delete' || kind === 'disable') return 0;
  const { max, inMs } = kind === 'test' ? TESTS : CHANGES;
  const isOfKind = ({ event: { type, data } }: Pick<RecordedEvent, 'event'>): boolean =>
    kind === 'test'
      ? type === 'WebhookTestRequested' && data.endpointId === command.endpointId
      : type !== 'WebhookTestRequested';
  const last = events.filter(isOfKind).slice(-max);
  const agesMs = last.map(({ time }) => Math.abs(nowMs - Date.parse(time)));
  const recent = agesMs.filter((ageMs) => ageMs < inMs);
  return recent.length < max ? 0 : inMs - Math.max(...recent);
};

/** `identity` is that of a request with an `Idempotency-Key`. */
export const decideEndpoint = (
  endpoints: readonly Endpoint[],
  command: EndpointCommand,
  identity?: RequestIdentity,
): Decided => {
  if (command.kind === 'create') {
    if (endpoints.length >= ENDPOINTS_MAX)
      return rejected(`a merchant has at most ${ENDPOINTS_MAX} webhook endpoints`);
    return decided({ type: 'WebhookEndpointCreated', data: { ...command.endpoint, identity } });
  }
  const { endpointId } = command;
  const endpoint = endpoints.find((one) => one.endpointId === endpointId);
  if (endpoint === undefined) return { kind: 'unknown endpoint' };
  switch (command.kind) {
    case 'change':
      return changed(endpoint, command);
    case 'rotate': {
      const { oldExpiresAt } = command;
      const secretNumber = endpoint.secretNumber + 1;
      const data = { endpointId, secretNumber, oldExpiresAt, identity };
      return decided({ type: 'WebhookEndpointSecretRotated', data });
    }
    case 'disable': {
      if (endpoint.disabled !== undefined) return decided();
      const { reason } = command;
      return decided({ type: 'WebhookEndpointDisabled', data: { endpointId, reason } });
    }
    case 'delete':
      return decided({ type: 'WebhookEndpointDeleted', data: { endpointId } });
    case 'test':
      return decided({ type: 'WebhookTestRequested', data: { endpointId, identity } });
    case 'resend': {
      if (endpoint.disabled !== undefined)
        return rejected('the endpoint is DISABLED; enable it first');
      const { kind: _, ...data } = command;
      return decided({ type: 'WebhookResendRequested', data: { ...data, identity } });
    }
  }
};
