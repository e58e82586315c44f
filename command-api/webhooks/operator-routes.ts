/** The webhook endpoints of all merchants, for operators. */
import {
  okJson,
  type RequestForm,
  type Route,
  type RoutesOf,
  sendJson,
} from '../../shared/http/route.ts';
import { merchantsWithEndpoints, readEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import {
  AllEndpointsParameters,
  AttemptParameters,
  MerchantEndpointList,
  WebhookAttemptList,
} from './contract.ts';
import { sendAttempts, type WebhookDeps } from './endpoint-requests.ts';
import { showEndpoint } from './shown.ts';

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
      for (const merchantId of merchantIds) {
        const own = await readEndpoints(webhooks.store, merchantId);
        for (const one of own.endpoints)
          endpoints.push({ merchantId, ...(await showEndpoint(webhooks.deliveries, one)) });
      }
      return sendJson(reply, { endpoints });
    },
  }),
  listAllWebhookAttempts: route({
    request: { allMerchants: true, endpointId: true, query: AttemptParameters },
    responses: okJson(WebhookAttemptList),
    handle: ({ webhooks }, { endpointId, query }, reply) =>
      sendAttempts(webhooks, endpointId, query, reply),
  }),
} satisfies Partial<RoutesOf<'command-api', WebhookDeps>>;
