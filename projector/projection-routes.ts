/**
 * The operator's routes over all read models: their status, a rebuild (ADR-0042), and a comparison with the
 * log. Scope `ops:admin`, and a token of all merchants, since the read models hold every merchant's payments.
 */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { REJECTION_HEADER, reject } from '../shared/http/errors.ts';
import { asJson, okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import {
  accepts,
  EVENT_STREAM,
  KEEP_ALIVE,
  type Source,
  type Streams,
  serverSent,
} from '../shared/http/server/streams.ts';
import { RebuildRunning } from '../shared/read-models/errors.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Projector } from './compose.ts';
import {
  ProjectionList,
  ReadModelsComparison,
  RebuildParameters,
  RebuildStarted,
} from './contract.ts';
import { ComparisonRunning, StandingBy } from './errors.ts';

export type ProjectionDeps = {
  projector: Pick<Projector, 'status' | 'lag' | 'rebuild' | 'rebuilds' | 'compareAll'>;
  streams: Streams;
};

const headersFor = ({ code }: RebuildRunning | ComparisonRunning | StandingBy) => ({
  'retry-after': '5',
  [REJECTION_HEADER]: code,
});
const STATUS_PATH = '/ops/v1/projections';

const statusOf = async ({ status, lag, rebuilds }: ProjectionDeps['projector']) => {
  const { state, checkpoint, caughtUp, parked, stuck, error } = status();
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
    caughtUp,
    parked,
    ...(reason === undefined ? {} : { reason }),
    rebuild: rebuilds.latest() ?? null,
  };
};

/** Long work that has begun; `next` gives undefined at the end. */
type Begun = { ended: Promise<object>; next(): Promise<object | undefined> };

/** Throws what the work throws before its first progress: RebuildRunning, ComparisonRunning, StandingBy. */
const begin = async (
  run: (onProgress: (progress: object) => void) => Promise<object>,
): Promise<Begun> => {
  let latest: object | undefined;
  let news = Promise.withResolvers<void>();
  const ended = run((progress) => {
    latest = progress;
    news.resolve();
  });
  // The client may be gone when the rebuild fails; the status still shows how it ended.
  ended.catch(() => undefined);
  await Promise.race([news.promise, ended]);
  return {
    ended,
    // Of the progress between two calls only the last is given.
    next: async () => {
      const isOver = await Promise.race([
        news.promise.then(() => false),
        ended.then(
          () => true,
          () => true,
        ),
      ]);
      if (isOver && latest === undefined) return undefined;
      const progress = latest;
      latest = undefined;
      news = Promise.withResolvers<void>();
      return progress;
    },
  };
};

/** The server-sent events of long work: `progress`, then `result`, or `failed` with the reason. */
const eventsOf = ({ ended, next }: Begun): Source =>
  async function* (signal) {
    const left = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined));
    });
    const nextOrLeft = () => Promise.race([left, next()]);
    for (let step = await nextOrLeft(); step !== undefined; step = await nextOrLeft()) {
      yield serverSent('progress', step);
    }
    if (signal.aborted) return;
    try {
      yield serverSent('result', await ended);
    } catch (error) {
      yield serverSent('failed', { reason: reasonOf(error) });
    }
  };

/** Rejects with 503 for RebuildRunning, ComparisonRunning and StandingBy. Throws any other error on. */
export const rejectUntilLater = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (error instanceof RebuildRunning) {
    const why = `a rebuild is under way already; GET ${STATUS_PATH} says how far it is`;
    return reject(reply, 'SERVICE_UNAVAILABLE', [why], headersFor(error));
  }
  if (error instanceof ComparisonRunning) {
    const why = 'the read models are being compared already; try again when that has ended';
    return reject(reply, 'SERVICE_UNAVAILABLE', [why], headersFor(error));
  }
  if (error instanceof StandingBy) {
    const why = 'this projector stands by; ask the one that follows the log';
    return reject(reply, 'SERVICE_UNAVAILABLE', [why], headersFor(error));
  }
  throw error;
};

const route = routeWith<ProjectionDeps>();

export const PROJECTION_ROUTES = {
  listProjections: route({
    request: { allMerchants: true },
    responses: okJson(ProjectionList),
    handle: async ({ projector }, _input, reply) =>
      sendJson(reply, { projections: [await statusOf(projector)] }),
  }),
  rebuildProjections: route({
    request: { allMerchants: true, query: RebuildParameters },
    responses: {
      200: {
        description: 'Its progress, as it goes.',
        content: { [EVENT_STREAM]: z.string() },
        unrecorded: true,
      },
      202: { description: 'It has begun.', content: asJson(RebuildStarted) },
      503: {
        description:
          'Another rebuild is under way, this projector stands by, or an engine is away.',
        headers: ['Retry-After'],
      },
    },
    handle: async ({ projector, streams }, { query }, reply) => {
      const accept = query.accept === 'true';
      try {
        const begun = await begin((onProgress) => projector.rebuild({ accept, onProgress }));
        if (accepts(reply, EVENT_STREAM) && streams.take(reply)) {
          return streams.send(reply, EVENT_STREAM, eventsOf(begun), KEEP_ALIVE);
        }
        const started = { status: 'started', progress: STATUS_PATH };
        return sendJson(reply.code(202).header('location', STATUS_PATH), started);
      } catch (error) {
        return rejectUntilLater(reply, error);
      }
    },
  }),
  compareReadModels: route({
    request: { allMerchants: true },
    responses: {
      200: {
        description: 'What differs.',
        content: { ...asJson(ReadModelsComparison), [EVENT_STREAM]: z.string() },
        unrecorded: true,
      },
    },
    handle: async ({ projector, streams }, _input, reply) => {
      try {
        const begun = await begin(projector.compareAll);
        if (accepts(reply, EVENT_STREAM) && streams.take(reply)) {
          return streams.send(reply, EVENT_STREAM, eventsOf(begun), KEEP_ALIVE);
        }
        return sendJson(reply, await begun.ended);
      } catch (error) {
        return rejectUntilLater(reply, error);
      }
    },
  }),
} satisfies Partial<RoutesOf<'projector', ProjectionDeps>>;
