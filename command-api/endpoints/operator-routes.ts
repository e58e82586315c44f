import { RETRY_LATER, reject } from '../../shared/http/errors.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../../shared/http/route.ts';
import { merchantsWithEndpoints, readableEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import * as contract from './contract.ts';
import { currentEndpointBody, sendAttempts, type WebhookDeps, type Webhooks } from './requests.ts';

const lookFor = async (
  { store, deliveries }: Webhooks,
  endpointId: string,
): Promise<'known' | 'unknown' | 'not readable'> => {
  if ((await deliveries.load(endpointId)) !== undefined) return 'known';
  const { merchantIds } = await merchantsWithEndpoints(store);
  let otherwise: 'unknown' | 'not readable' = 'unknown';
  for (const merchantId of merchantIds) {
    const own = await readableEndpoints(store, merchantId, () => {
      otherwise = 'not readable';
    });
    if (own?.endpoints.some((one) => one.endpointId === endpointId)) return 'known';
  }
  return otherwise;
};

const NOT_READABLE = [
  'the webhook endpoints of a merchant cannot be read, and it may be one of them',
];

const route = routeWith<WebhookDeps>();

export const WEBHOOK_OPERATOR_ROUTES = {
  listAllWebhookEndpoints: route({
    request: { allMerchants: true, query: contract.AllEndpointsParameters },
    responses: okJson(contract.MerchantEndpointList),
    handle: async ({ webhooks }, { query: { merchant } }, reply) => {
      const { merchantIds } =
        merchant === undefined
          ? await merchantsWithEndpoints(webhooks.store)
          : { merchantIds: [merchant] };
      const endpoints: object[] = [];
      const unreadable: string[] = [];
      for (const merchantId of merchantIds) {
        const note = () => unreadable.push(merchantId);
        const own = await readableEndpoints(webhooks.store, merchantId, note);
        for (const one of own?.endpoints ?? [])
          endpoints.push({ merchantId, ...(await currentEndpointBody(webhooks.deliveries, one)) });
      }
      return sendJson(reply, { endpoints, ...(unreadable.length > 0 && { unreadable }) });
    },
  }),
  listAllWebhookAttempts: route({
    request: { allMerchants: true, endpointId: true, query: contract.AttemptParameters },
    responses: {
      ...okJson(contract.WebhookAttemptList),
      404: { description: 'No merchant has such a webhook endpoint.' },
    },
    handle: async ({ webhooks }, { endpointId, query }, reply) => {
      const found = await lookFor(webhooks, endpointId);
      if (found === 'unknown') return reject(reply, 'WEBHOOK_ENDPOINT_NOT_FOUND');
      if (found === 'not readable')
        return reject(reply, 'SERVICE_UNAVAILABLE', NOT_READABLE, RETRY_LATER);
      return sendAttempts(webhooks, endpointId, query, reply);
    },
  }),
} satisfies Partial<RoutesOf<'command-api', WebhookDeps>>;
