/** The bodies that a webhook endpoint is sent, as they happen, for merchants without a public address. */
import { asEvents } from '../audit/deps.ts';
import { RETRY, rejectBusy, sendLive } from '../audit/live.ts';
import type { MerchantLookup } from '../audit/merchants.ts';
import { NO_POSITION_NOR_NOW, POSITION, readLastEventId } from '../audit/parameters.ts';
import type { PaymentStates } from '../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, SubscriptionItem } from '../shared/event-store/port.ts';
import type { Principal } from '../shared/http/auth/principal.ts';
import { mayUse } from '../shared/http/auth/tokens.ts';
import { parameters, parameterText } from '../shared/http/fields.ts';
import { type RoutesOf, routeWith } from '../shared/http/route.ts';
import { type Streams, serverSent } from '../shared/http/server/streams.ts';
import {
  isWanted,
  type Message,
  messageAt,
  SUBSCRIBABLE_TYPES,
} from '../shared/webhooks/message.ts';
import { listenKey, secretTextOf, type WebhookSecret } from '../shared/webhooks/signer.ts';

export type WebhookEventDeps = {
  webhookEvents: {
    store: EventStore;
    merchants: MerchantLookup;
    states: PaymentStates;
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

const messageOf = async (
  { merchants, states }: Deps,
  event: LogEvent,
  merchantId: string,
): Promise<Message | undefined> => {
  if ((await merchants.of(event)) !== merchantId) return undefined;
  return messageAt(states, event);
};

/** A body has no line breaks, so it can stand in one data line. */
const sentAs = ({ type, body }: Message, position: string): string =>
  `id: ${position}\nevent: ${type}\ndata: ${body}\n\n`;

/** Only a token that may give an endpoint a new secret gets one (gaps §20). */
const ready = async ({ secret }: Deps, principal: Principal): Promise<{ secret?: string }> =>
  mayUse(principal, 'webhooks:write')
    ? { secret: secretTextOf(listenKey(await secret(), principal.merchantId)) }
    : {};

async function* texts(
  deps: Deps,
  items: AsyncGenerator<SubscriptionItem>,
  principal: Principal,
  eventTypes: readonly string[] | undefined,
  after: string | null,
): AsyncGenerator<string> {
  let last = after;
  // `caught-up` comes only after own events: more would show how busy other merchants are.
  let hasNews = true;
  yield RETRY;
  yield serverSent('ready', await ready(deps, principal));
  for await (const item of items) {
    if (item.kind === 'caught-up' && hasNews) {
      hasNews = false;
      yield serverSent('caught-up', {}, last ?? undefined);
    }
    if (item.kind !== 'events') continue;
    for (const event of item.events) {
      const message = await messageOf(deps, event, principal.merchantId);
      last = event.position;
      if (message === undefined || !isWanted({ eventTypes }, message.type)) continue;
      hasNews = true;
      yield sentAs(message, event.position);
    }
  }
}

const route = routeWith<WebhookEventDeps>();

export const WEBHOOK_EVENT_ROUTES = {
  streamWebhookEvents: route({
    request: { query: Parameters, read: readLastEventId },
    responses: {
      200: { description: 'The messages.', content: asEvents, unrecorded: true },
      500: { description: 'A fault of ours.', unrecorded: true },
    },
    handle: async ({ webhookEvents: deps }, { principal, query, content: lastId }, reply) => {
      if (!deps.streams.take(reply)) return rejectBusy(reply);
      const { from, types } = query;
      return sendLive(deps, { principal, from, lastId }, reply, (items, after) =>
        texts(deps, items, principal, types, after),
      );
    },
  }),
} satisfies Partial<RoutesOf<'query-api', WebhookEventDeps>>;
