/** The export at an address of its own, served by the process that holds the sealing key (gaps §25). */
import type { FastifyInstance } from 'fastify';
import { createRecorder } from '../shared/http/access-recorder.ts';
import { type RoutesOf, routeWith } from '../shared/http/route.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import { asLines, onlyOf } from './deps.ts';
import {
  type ExportDeps,
  exportOfLog,
  exportOfPayment,
  sendExport,
  withManifest,
} from './export.ts';
import { rejectBusy } from './live.ts';
import { beginLogRead } from './log-routes.ts';
import { createMerchantLookup } from './merchants.ts';
import { ExportParameters } from './parameters.ts';
import { find } from './payment-routes.ts';

/** Apart from what other routes of the process are given. */
export type Exporting = { exporting: ExportDeps };

const route = routeWith<Exporting>();

export const EXPORT_ROUTES = {
  exportEvents: route({
    request: { query: ExportParameters },
    responses: {
      200: {
        description: 'The lines, and the manifest as the last one.',
        content: asLines,
        unrecorded: true,
      },
      404: { description: 'No such payment to be seen.' },
    },
    handle: async ({ exporting: deps }, { principal, query }, reply) => {
      const { payment: paymentId, ...requested } = query;
      if (!deps.streams.take(reply)) return rejectBusy(reply);
      if (paymentId === undefined) {
        if (await beginLogRead(deps, requested.from, reply, 'EXPORT')) return reply;
        const whole = await exportOfLog(deps, requested, onlyOf(principal));
        return sendExport(deps, withManifest(whole, deps.sign), reply);
      }
      const found = await find(deps, { principal, paymentId }, reply, 'EXPORT');
      if (found === undefined) return reply;
      return sendExport(deps, withManifest(await exportOfPayment(deps, found), deps.sign), reply);
    },
  }),
} satisfies Partial<RoutesOf<'projector', Exporting>>;

type ExportApi = Pick<ExportDeps, 'store' | 'readModels' | 'sign'> &
  Partial<Pick<ExportDeps, 'record'>>;

/** With places for streams of its own, so that exports never hold those of operators. */
export const openExport = (app: FastifyInstance, api: ExportApi): ExportDeps => ({
  record: createRecorder(api.store),
  ...api,
  merchants: createMerchantLookup(api.store, api.readModels),
  streams: createStreams(app),
});
