/** An operator lets merchants move money again (gaps §17). */
import { z } from 'zod';
import {
  ControlNotWhole,
  RevisionConflict,
  StoreUnavailable,
} from '../../../shared/event-store/errors.ts';
import { RETRY_LATER, reject } from '../../../shared/http/errors.ts';
import { named } from '../../../shared/http/fields.ts';
import { contextOf, senderOf } from '../../../shared/http/request.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../../../shared/http/route.ts';
import type { ProviderAhead } from './provider-ahead.ts';

export const Acknowledgement = named('Acknowledgement', {
  acknowledged: z
    .boolean()
    .describe('False where the provider was not ahead of the log: nothing had to be recorded.'),
  operations: z
    .int()
    .min(0)
    .describe("Operations on the last page of the provider's ledger that the log does not hold."),
  cursor: z
    .string()
    .optional()
    .describe('Up to here everything in the ledger is acknowledged; opaque.'),
});
export type Acknowledgement = z.infer<typeof Acknowledgement>;

export type AcknowledgeDeps = { providerAhead: Pick<ProviderAhead, 'acknowledge'> };

const route = routeWith<AcknowledgeDeps>();

const CANNOT_READ = ["the provider's ledger cannot be read now; nothing was changed"];
const TWO_AT_ONCE = ['another acknowledgement was recorded at the same moment; look again'];

export const ACKNOWLEDGE_ROUTES = {
  acknowledgeReconciliation: route({
    request: { allMerchants: true, person: true },
    responses: okJson(Acknowledgement),
    handle: async ({ providerAhead }, { principal }, reply) => {
      const context = contextOf(senderOf(principal, reply));
      try {
        const ahead = await providerAhead.acknowledge(context);
        const response = { acknowledged: ahead !== undefined, ...(ahead ?? { operations: 0 }) };
        return sendJson(reply, response);
      } catch (error) {
        if (error instanceof RevisionConflict)
          return reject(reply, 'SERVICE_UNAVAILABLE', TWO_AT_ONCE, RETRY_LATER);
        if (error instanceof StoreUnavailable || error instanceof ControlNotWhole) throw error;
        return reject(reply, 'PROVIDER_UNAVAILABLE', CANNOT_READ, RETRY_LATER);
      }
    },
  }),
} satisfies Partial<RoutesOf<'command-api', AcknowledgeDeps>>;
