/** The bodies that a webhook endpoint is sent, as they happen, for merchants without a public address. */
import { asEvents } from '../audit/deps.ts';
import { RETRY, rejectBusy, sendLive } from '../audit/live.ts';
import type { MerchantLookup } from '../audit/merchants.ts';
import { NO_POSITION_NOR_NOW, POSITION, readLastEventId } from '../audit/parameters.ts';
import type { PaymentStates } from '../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent } from '../shared/event-store/port.ts';
import { mayUse } from '../shared/http/auth/tokens.ts';
import { parameters, parameterText } from '../shared/http/fields.ts';
import type { Principal } from '../shared/http/request.ts';
import { type RoutesOf, routeWith } from '../shared/http/route.ts';
import { type Streams, serverSent } from '../shared/http/server/streams.ts';
import type { OpenText } from '../shared/payment/state.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { SUBSCRIBABLE_TYPES } from '../webhooks/message.ts';
import { listenKey, secretTextOf, type WebhookSecret } from '../webhooks/signer.ts';
import { messageText, pastMessages } from './past-messages.ts';

export type WebhookEventDeps = {
  webhookEvents: {
    store: EventStore;
    readModels: Pick<ReadModelsReader, 'getAny'>;
    merchants: MerchantLookup;
    states: PaymentStates;
    openText: OpenText;
    streams: Streams;
    secret: WebhookSecret;
  };
};
type Deps = WebhookEventDeps['webhookEvents'];

const NO_TYPES = `must be a comma list of ${SUBSCRIBABLE_TYPES.join(', ')}`;
const isType = (type: string): boolean => SUBSCRIBABLE_TYPES.some((one) => one === type);

const Parameters = parameters({
  from: parameterText().regex(POSITION, NO_POSITION_NOR_NOW).default('now'),
  types: parameterText()
    .transform((types) => types.split(','))
    .refine((types) => types.every(isType), NO_TYPES)
    .optional(),
});

/** Only a token that may give an endpoint a new secret gets one (gaps §20). */
const ready = async ({ secret }: Deps, principal: Principal): Promise<{ secret?: string }> =>
  mayUse(principal, 'webhooks:write')
    ? { secret: secretTextOf(listenKey(await secret(), principal.merchantId)) }
    : {};

const route = routeWith<WebhookEventDeps>();

export const WEBHOOK_EVENT_ROUTES = {
  streamWebhookEvents: route({
    request: { query: Parameters, read: readLastEventId },
    responses: { 200: asEvents },
    handle: async ({ webhookEvents: deps }, { principal, query, content: lastId }, reply) => {
      if (!deps.streams.take(reply)) return rejectBusy(reply);
      const { from, types } = query;
      const { merchantId } = principal;
      const begin = RETRY + serverSent('ready', await ready(deps, principal));
      const args = { only: merchantId, eventTypes: types };
      const textOf = (event: LogEvent) => messageText(deps.states, event, args, deps.openText);
      const past = { past: pastMessages, calls: { openText: deps.openText } };
      const requested = { principal, from, lastId, begin, ...past, args, textOf };
      return sendLive(deps, reply, requested);
    },
  }),
} satisfies Partial<RoutesOf<'query-api', WebhookEventDeps>>;
