/** The webhook endpoints of all merchants, for operators. */
import { reject } from '../../shared/http/errors.ts';
import {
  okJson,
  type RequestForm,
  type Route,
  type RoutesOf,
  sendJson,
} from '../../shared/http/route.ts';
import {
  merchantsWithEndpoints,
  readableEndpoints,
  readEndpoints,
} from '../../shared/webhooks/endpoint-log.ts';
import {
  AllEndpointsParameters,
  AttemptParameters,
  MerchantEndpointList,
  WebhookAttemptList,
} from './contract.ts';
import { sendAttempts, type WebhookDeps, type Webhooks } from './endpoint-requests.ts';
import { showEndpoint } from './shown.ts';

/** Whether the deliverer has a row of the endpoint, or else any merchant has it. Throws what either store throws. */
const isKnown = async ({ store, deliveries }: Webhooks, endpointId: string): Promise<boolean> => {
  if ((await deliveries.load(endpointId)) !== undefined) return true;
  const { merchantIds } = await merchantsWithEndpoints(store);
  for (const merchantId of merchantIds) {
    const { endpoints } = await readEndpoints(store, merchantId);
    if (endpoints.some((one) => one.endpointId === endpointId)) return true;
  }
  return false;
};

const route = <const F extends RequestForm>(own: Route<WebhookDeps, F>) => own;

export const WEBHOOK_OPERATOR_ROUTES = {
  listAllWebhookEndpoints: route({
    request: { allMerchants: true, query: AllEndpointsParameters },
    responses: okJson(MerchantEndpointList),
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
          endpoints.push({ merchantId, ...(await showEndpoint(webhooks.deliveries, one)) });
      }
      return sendJson(reply, { endpoints, ...(unreadable.length > 0 && { unreadable }) });
    },
  }),
  listAllWebhookAttempts: route({
    request: { allMerchants: true, endpointId: true, query: AttemptParameters },
    responses: {
      ...okJson(WebhookAttemptList),
      404: { description: 'No merchant has such a webhook endpoint.' },
    },
    handle: async ({ webhooks }, { endpointId, query }, reply) => {
      if (!(await isKnown(webhooks, endpointId)))
        return reject(reply, 'WEBHOOK_ENDPOINT_NOT_FOUND');
      return sendAttempts(webhooks, endpointId, query, reply);
    },
  }),
} satisfies Partial<RoutesOf<'command-api', WebhookDeps>>;
