/** An export as it is sent: its lines and, at an address of its own, its signed manifest after them (gaps §25). */
import type { FastifyReply } from 'fastify';
import { logIdOf } from '../shared/event-store/chain.ts';
import { StreamNotWhole } from '../shared/event-store/errors.ts';
import { onlyOf } from '../shared/http/request.ts';
import { type RoutesOf, routeWith } from '../shared/http/route.ts';
import { inTurn } from '../shared/http/server/shares.ts';
import { NDJSON } from '../shared/http/server/streams.ts';
import { SEALS_STREAM } from '../shared/payment/seal-events.ts';
import { onError } from '../shared/runtime/error-text.ts';
import { type AuditDeps, asLines } from './deps.ts';
import {
  breakLine,
  COMPLETENESS_HEADER,
  type ExportTotals,
  GUARANTEE_HEADER,
  LOG_HEADER,
  MERCHANT_HEADER,
  manifestLine,
} from './export-lines.ts';
import { findHistory, type History } from './history.ts';
import { rejectBusy } from './live.ts';
import { exportTexts, type LogRequest, linesOf } from './log.ts';
import type { Manifest } from './manifest.ts';
import { ExportParameters, NO_POSITION, rejectPlace, startOf } from './parameters.ts';
import { removedFor } from './verification.ts';

export type ExportDeps = Pick<
  AuditDeps,
  'store' | 'readModels' | 'merchants' | 'streams' | 'record'
> & {
  /** By the sealing key; left out where this process has none. */
  sign?: ((manifest: Manifest) => Manifest['signature']) | undefined;
};

export type Export = Pick<
  Manifest,
  'log' | 'merchantId' | 'completeness' | 'guarantee' | 'range'
> & { texts(signal: AbortSignal): AsyncGenerator<string, ExportTotals> };

type Deps = Pick<ExportDeps, 'store' | 'readModels' | 'merchants'>;

const completenessOf = ({ from, fromTime, toTime, limit }: LogRequest, isWhole: boolean) => {
  const isPart = startOf(from) !== null || (fromTime ?? toTime ?? limit) !== undefined;
  if (isPart) return 'range';
  return isWhole ? 'log' : 'streams';
};

/** False also where the seals were removed at the server: the log can still be exported. */
export const hasSeals = async ({ store }: Pick<Deps, 'store'>): Promise<boolean> =>
  (await store.lastRevision(SEALS_STREAM).catch(onError(StreamNotWhole, () => null))) !== null;

const guaranteeOf = async (deps: Deps): Promise<Manifest['guarantee']> => {
  const { guarantee } = deps.store.stored;
  return guarantee === 'stream' && (await hasSeals(deps)) ? 'sealed' : guarantee;
};

/** Of one merchant where `only` names it. Throws StoreUnavailable, as its texts do. */
export const exportOfLog = async (
  deps: Deps,
  requested: LogRequest,
  only: string | undefined,
): Promise<Export> => {
  const { from, fromTime, toTime: to, limit } = requested;
  const completeness = completenessOf(requested, only === undefined);
  return {
    log: await logIdOf(deps.store),
    merchantId: only?.toWellFormed(),
    completeness,
    guarantee: only === undefined ? await guaranteeOf(deps) : 'stream',
    range: { from: from ?? fromTime, fromTime: from && fromTime, to, limit },
    texts: async function* (signal) {
      const totals = yield* exportTexts(deps, { requested, only }, signal);
      if (completeness === 'range') return totals;
      const { breaks } = await removedFor(deps, only, false, signal);
      for (const broken of breaks) yield `${breakLine(broken)}\n`;
      // A look at what was removed that was broken off is none.
      signal.throwIfAborted();
      return { ...totals, breaks: [...totals.breaks, ...breaks] };
    },
  };
};

export const exportOfPayment = async (
  { store }: Deps,
  { paymentId, merchantId, forms, broken }: History & { paymentId: string },
): Promise<Export> => ({
  log: await logIdOf(store),
  merchantId: merchantId.toWellFormed(),
  completeness: 'streams',
  guarantee: 'stream',
  range: { paymentId },
  texts: () => linesOf(forms, broken),
});

export const withManifest = ({ texts, ...said }: Export, sign: ExportDeps['sign']): Export => ({
  ...said,
  texts: async function* (signal) {
    const totals = yield* texts(signal);
    const { breaks, ...counted } = totals;
    const removed = breaks.map(({ stream, revision, reason }) => ({ stream, revision, reason }));
    const manifest: Manifest = {
      ...({ format: 'payments-export', version: 1 } as const),
      exportedAt: new Date().toISOString(),
      ...said,
      ...counted,
      ...(removed.length > 0 && { removed }),
    };
    yield `${manifestLine({ ...manifest, signature: sign?.(manifest) })}\n`;
    return totals;
  },
});

export const headersOf = ({ log = '', merchantId, completeness, guarantee }: Export) => ({
  [COMPLETENESS_HEADER]: completeness,
  [GUARANTEE_HEADER]: guarantee,
  [LOG_HEADER]: log,
  ...(merchantId !== undefined && { [MERCHANT_HEADER]: encodeURIComponent(merchantId) }),
});

export const sendExport = (
  { streams }: Pick<ExportDeps, 'streams'>,
  one: Export,
  reply: FastifyReply,
): FastifyReply => streams.send(reply.headers(headersOf(one)), NDJSON, one.texts);

/** Rejects a position that the log does not have, before anything is recorded or sent. True: rejected. */
export const beginLogRead = async (
  { store, record }: Pick<AuditDeps, 'store' | 'record'>,
  from: string | undefined,
  reply: FastifyReply,
  action: 'EXPORT' | 'LOG',
): Promise<boolean> => {
  try {
    await store.readAll(startOf(from), 0);
  } catch (error) {
    rejectPlace(reply, error, `from ${NO_POSITION}`);
    return true;
  }
  await record(reply.request, { action });
  return false;
};

/** Apart from what other routes of the process are given. */
export type Exporting = { exporting: ExportDeps };

const route = routeWith<Exporting>();

export const EXPORT_ROUTES = {
  exportEvents: route({
    request: { query: ExportParameters },
    responses: { 200: asLines },
    handle: async ({ exporting: deps }, { principal, query }, reply) => {
      const { payment: paymentId, ...requested } = query;
      if (!deps.streams.take(reply)) return rejectBusy(reply);
      if (paymentId === undefined) {
        if (await beginLogRead(deps, requested.from, reply, 'EXPORT')) return reply;
        const send = async () => {
          const whole = await exportOfLog(deps, requested, onlyOf(principal));
          return sendExport(deps, withManifest(whole, deps.sign), reply);
        };
        return (await inTurn('past', reply, send)) ?? reply;
      }
      const found = await findHistory(deps, { principal, paymentId }, reply, { action: 'EXPORT' });
      if (found === undefined) return reply;
      return sendExport(deps, withManifest(await exportOfPayment(deps, found), deps.sign), reply);
    },
  }),
} satisfies Partial<RoutesOf<'projector', Exporting>>;
