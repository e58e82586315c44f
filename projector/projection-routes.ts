/** Status, rebuild (ADR-0042), comparison: tokens of all merchants; parked payments (P5): also a merchant's. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { reject } from '../shared/http/errors.ts';
import { NoParameters } from '../shared/http/fields.ts';
import { asJson, okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import {
  accepts,
  EVENT_STREAM,
  type Streams,
  serverSent,
  type TextSource,
} from '../shared/http/server/streams.ts';
import { parkedPayments } from '../shared/read-models/pages.ts';
import type { ParkedPayment, ReadModelsReader } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Projector } from './compose.ts';
import {
  ParkedList,
  ParkedRetry,
  ProjectionList,
  ReadModelsComparison,
  RebuildParameters,
  RebuildStarted,
} from './contract.ts';

export type ProjectionDeps = {
  projector: Pick<
    Projector,
    'status' | 'isCaughtUp' | 'lag' | 'rebuild' | 'rebuilds' | 'compareAll'
  >;
  streams: Streams;
};

const STATUS_PATH = '/ops/v1/projections';

const statusOf = async (projector: ProjectionDeps['projector']) => {
  const { status, isCaughtUp, lag, rebuilds } = projector;
  const { state, checkpoint, parked, stuck, error } = status();
  // With the event store out of reach, the operator still needs the rest of the status.
  const measured = await lag().catch(() => undefined);
  const reason = measured === undefined ? 'the event store is out of reach' : error;
  return {
    projection: 'payments',
    state: measured?.stuck || stuck ? 'stuck' : state,
    checkpoint,
    head: measured?.head ?? null,
    lagEvents: measured?.events ?? null,
    lagIsExact: measured?.isExact ?? null,
    lagSeconds: measured?.seconds ?? null,
    caughtUp: await isCaughtUp(),
    parked,
    ...(reason === undefined ? {} : { reason }),
    rebuild: rebuilds.latest() ?? null,
  };
};

/** Long work that has begun, and its progress as server-sent events until its result. */
const begin = async (run: (onProgress: (progress: object) => void) => Promise<object>) => {
  const steps = new PassThrough({ objectMode: true, highWaterMark: 1 });
  const ended = run((progress) => {
    // A client that reads slowly gets fewer of them.
    if (steps.writable && !steps.writableNeedDrain) steps.write(progress);
  });
  // The client may be gone when the work fails; the status still shows how it ended.
  void ended.catch(() => undefined).then(() => steps.end());
  await Promise.race([once(steps, 'readable'), ended]);
  const source: TextSource = async function* (signal) {
    signal.addEventListener('abort', () => steps.end());
    for await (const step of steps) yield serverSent('progress', step);
    if (signal.aborted) return;
    try {
      yield serverSent('result', await ended);
    } catch (error) {
      yield serverSent('failed', { reason: reasonOf(error) });
    }
  };
  return { ended, source };
};

const streamOr = (
  reply: FastifyReply,
  streams: Streams,
  source: TextSource,
  otherwise: () => FastifyReply | Promise<FastifyReply>,
): FastifyReply | Promise<FastifyReply> =>
  accepts(reply, EVENT_STREAM) && streams.take(reply)
    ? streams.send(reply, EVENT_STREAM, source)
    : otherwise();

const route = routeWith<ProjectionDeps>();

export const PROJECTION_ROUTES = {
  listProjections: route({
    request: { allMerchants: true, query: NoParameters },
    responses: okJson(ProjectionList),
    handle: async ({ projector }, _input, reply) =>
      sendJson(reply, { projections: [await statusOf(projector)] }),
  }),
  rebuildProjections: route({
    request: { allMerchants: true, query: RebuildParameters },
    responses: { 200: { [EVENT_STREAM]: z.string() }, 202: asJson(RebuildStarted) },
    handle: async ({ projector, streams }, { query }, reply) => {
      const accept = query.accept === 'true';
      const { source } = await begin((onProgress) => projector.rebuild({ accept, onProgress }));
      const started = { status: 'started', progress: STATUS_PATH };
      return streamOr(reply, streams, source, () =>
        sendJson(reply.code(202).header('location', STATUS_PATH), started),
      );
    },
  }),
  compareReadModels: route({
    request: { allMerchants: true },
    responses: okJson(ReadModelsComparison, { [EVENT_STREAM]: z.string() }),
    handle: async ({ projector, streams }, _input, reply) => {
      const { source, ended } = await begin(projector.compareAll);
      return streamOr(reply, streams, source, async () => sendJson(reply, await ended));
    },
  }),
} satisfies Partial<RoutesOf<'projector', ProjectionDeps>>;

export type ParkedDeps = {
  projector: Pick<Projector, 'retryParked'>;
  readModels: Pick<ReadModelsReader, 'parked' | 'getAny'>;
};

const LISTED_MAX = 1_000;
const PAGE = 1_000;

/** A payment parked at its first event has no document that names its merchant. */
const isVisible = async (
  { getAny }: ParkedDeps['readModels'],
  { paymentId }: ParkedPayment,
  merchantId: string,
): Promise<boolean> => merchantId === '*' || (await getAny(paymentId))?.merchantId === merchantId;

const findParked = async ({ readModels }: ParkedDeps, paymentId: string) => {
  for await (const parked of parkedPayments(readModels, PAGE)) {
    if (parked.paymentId === paymentId) return parked;
  }
  return undefined;
};

const parkedRoute = routeWith<ParkedDeps>();

export const PARKED_ROUTES = {
  listParked: parkedRoute({
    request: { query: NoParameters },
    responses: okJson(ParkedList),
    handle: async ({ readModels }, { principal }, reply) => {
      const visible: ParkedPayment[] = [];
      for await (const parked of parkedPayments(readModels, PAGE)) {
        if (await isVisible(readModels, parked, principal.merchantId)) visible.push(parked);
        if (visible.length === LISTED_MAX) break;
      }
      return sendJson(reply, { parked: visible });
    },
  }),
  retryParked: parkedRoute({
    request: { paymentId: 'INVALID_PAYMENT_ID' },
    responses: okJson(ParkedRetry),
    handle: async (deps, { principal, paymentId }, reply) => {
      const { projector, readModels } = deps;
      const found = await findParked(deps, paymentId);
      const isSeen = found && (await isVisible(readModels, found, principal.merchantId));
      if (isSeen !== true)
        return reject(reply, 'PAYMENT_NOT_FOUND', ['no parked payment has this id']);
      reply.request.paymentId = paymentId;
      const whole = await projector.retryParked(paymentId);
      const parked = await findParked(deps, paymentId);
      const stopped = parked && { at: parked.revision, reason: parked.reason };
      return sendJson(reply, { paymentId, whole, ...stopped });
    },
  }),
} satisfies Partial<RoutesOf<'projector', ParkedDeps>>;
