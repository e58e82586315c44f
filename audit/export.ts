/** An export as it is sent: its lines and, at an address of its own, its signed manifest after them (gaps §25). */
import type { FastifyReply } from 'fastify';
import { logIdOf } from '../shared/event-store/chain.ts';
import { StreamNotWhole } from '../shared/event-store/errors.ts';
import type { Manifest } from '../shared/event-store/manifest.ts';
import { NDJSON } from '../shared/http/server/streams.ts';
import { SEALS_STREAM } from '../shared/payment/seal-events.ts';
import type { AuditDeps } from './deps.ts';
import {
  breakLine,
  COMPLETENESS_HEADER,
  type ExportTotals,
  GUARANTEE_HEADER,
  LOG_HEADER,
  MERCHANT_HEADER,
  manifestLine,
  removedOf,
} from './export-lines.ts';
import type { History } from './history.ts';
import { exportTexts, type LogRequest, linesOf } from './log.ts';
import { startOf } from './parameters.ts';
import { removedFor } from './verification.ts';

export type ExportDeps = Pick<
  AuditDeps,
  'store' | 'readModels' | 'merchants' | 'streams' | 'record'
> & {
  /** By the sealing key; left out where this process has none. */
  sign?: ((manifest: Manifest) => Manifest['signature']) | undefined;
};

/** `completeness`, `log` and the merchant are known before the first line. */
export type Export = Pick<Manifest, 'range'> & {
  scope: Pick<Manifest, 'log' | 'merchantId' | 'completeness' | 'guarantee'>;
  texts(signal: AbortSignal): AsyncGenerator<string, ExportTotals>;
};

type Deps = Pick<ExportDeps, 'store' | 'readModels' | 'merchants'>;

const completenessOf = ({ from, fromTime, toTime, limit }: LogRequest, isWhole: boolean) => {
  const isPart = startOf(from) !== null || fromTime !== undefined || toTime !== undefined;
  if (isPart || limit !== undefined) return 'range';
  return isWhole ? 'log' : 'streams';
};

/** False also where the seals were removed at the server: the log can still be exported. */
const hasSeals = async ({ store }: Deps): Promise<boolean> => {
  try {
    return (await store.lastRevision(SEALS_STREAM)) !== null;
  } catch (error) {
    if (error instanceof StreamNotWhole) return false;
    throw error;
  }
};

const guaranteeOf = async (deps: Deps): Promise<Manifest['guarantee']> => {
  const { guarantee } = deps.store.stored;
  return guarantee === 'stream' && (await hasSeals(deps)) ? 'sealed' : guarantee;
};

const scopeOf = async ({ store }: Deps, merchantId: string | undefined) => ({
  log: await logIdOf(store),
  ...(merchantId !== undefined && { merchantId: merchantId.toWellFormed() }),
});

const rangeOf = ({ from, fromTime, toTime: to, limit }: LogRequest): Manifest['range'] => ({
  ...((from ?? fromTime) !== undefined && { from: from ?? fromTime }),
  ...(from !== undefined && fromTime !== undefined && { fromTime }),
  ...(to !== undefined && { to }),
  ...(limit !== undefined && { limit }),
});

/** Of one merchant where `only` names it. Throws StoreUnavailable, as its texts do. */
export const exportOfLog = async (
  deps: Deps,
  requested: LogRequest,
  only: string | undefined,
): Promise<Export> => {
  const completeness = completenessOf(requested, only === undefined);
  const guarantee = only === undefined ? await guaranteeOf(deps) : 'stream';
  return {
    scope: { ...(await scopeOf(deps, only)), completeness, guarantee },
    range: rangeOf(requested),
    texts: async function* (signal) {
      const totals = yield* exportTexts(deps, { requested, only }, signal);
      if (completeness === 'range') return totals;
      const { breaks } = await removedFor(deps, only, false, signal);
      for (const broken of breaks) yield `${breakLine(broken)}\n`;
      // A look at what was removed that was broken off is none.
      signal.throwIfAborted();
      return { ...totals, removed: [...totals.removed, ...breaks.map(removedOf)] };
    },
  };
};

export const exportOfPayment = async (
  deps: Deps,
  { paymentId, merchantId, forms, broken }: History & { paymentId: string },
): Promise<Export> => ({
  scope: { ...(await scopeOf(deps, merchantId)), completeness: 'streams', guarantee: 'stream' },
  range: { paymentId },
  texts: () => linesOf(forms, broken),
});

const manifestOf = (
  { scope, range }: Export,
  { removed, ...totals }: ExportTotals,
  sign: ExportDeps['sign'],
): Manifest => {
  const manifest: Manifest = {
    format: 'payments-export',
    version: 1,
    exportedAt: new Date().toISOString(),
    ...scope,
    range,
    ...totals,
    ...(removed.length > 0 && { removed }),
  };
  const signature = sign?.(manifest);
  return signature === undefined ? manifest : { ...manifest, signature };
};

/** The export with its manifest as its last line: without that line it was cut off. */
export const withManifest = (whole: Export, sign: ExportDeps['sign']): Export => ({
  ...whole,
  texts: async function* (signal) {
    const totals = yield* whole.texts(signal);
    yield `${manifestLine(manifestOf(whole, totals, sign))}\n`;
    return totals;
  },
});

export const headersOf = ({ log = '', merchantId, completeness, guarantee }: Export['scope']) => ({
  [COMPLETENESS_HEADER]: completeness,
  [GUARANTEE_HEADER]: guarantee,
  [LOG_HEADER]: log,
  ...(merchantId !== undefined && { [MERCHANT_HEADER]: encodeURIComponent(merchantId) }),
});

export const sendExport = (
  { streams }: Pick<ExportDeps, 'streams'>,
  { scope, texts }: Export,
  reply: FastifyReply,
): FastifyReply => streams.send(reply.headers(headersOf(scope)), NDJSON, texts);
