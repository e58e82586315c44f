/**
 * The operator's routes over the read models as a whole: how far they are, and filling them anew
 * (ADR-0015). Scope `ops:admin`, and a token of all merchants: they hold everybody's payments.
 */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { REJECTION_HEADER, reject } from '../shared/http/errors.ts';
import {
  asJson,
  okJson,
  type RequestForm,
  type Route,
  type RoutesOf,
  sendJson,
} from '../shared/http/route.ts';
import {
  EVENT_STREAM,
  KEEP_ALIVE,
  type Source,
  type Streams,
  serverSent,
} from '../shared/http/server/streams.ts';
import { RebuildRunning } from '../shared/read-models/errors.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Projector } from './compose.ts';
import { ProjectionList, RebuildStarted } from './contract.ts';
import { StandingBy } from './errors.ts';
import type { RebuildProgress, RebuildResult } from './rebuild.ts';

export type ProjectionDeps = {
  projector: Pick<Projector, 'status' | 'lag' | 'rebuild' | 'rebuilds'>;
  streams: Streams;
};

/** Says when to ask again, and why not now, for a program: two reasons share one error code. */
const forNow = ({ code }: RebuildRunning | StandingBy) => ({
  'retry-after': '5',
  [REJECTION_HEADER]: code,
});
const PLACE = '/ops/v1/projections';

const statusOf = async ({ status, lag, rebuilds }: ProjectionDeps['projector']) => {
  const { state, checkpoint, caughtUp, parked, stuck, error } = status();
  // Where the event store is out of reach the rest is worth all the more.
  const measured = await lag().catch(() => undefined);
  const reason = measured === undefined ? 'the event store is out of reach' : error;
  return {
    projection: 'payments',
    state: measured?.stuck || stuck ? 'stuck' : state,
    checkpoint,
    head: measured?.head ?? null,
    lagEvents: measured?.events ?? null,
    lagSeconds: measured?.seconds ?? null,
    caughtUp,
    parked,
    ...(reason === undefined ? {} : { reason }),
    rebuild: rebuilds.latest() ?? null,
  };
};

/** A rebuild that has begun: what it reports from now on, and its end. */
type Begun = { ended: Promise<RebuildResult>; next(): Promise<RebuildProgress | undefined> };

/** Resolves once the rebuild has begun. Throws RebuildRunning and StandingBy. */
const begin = async (projector: ProjectionDeps['projector']): Promise<Begun> => {
  let latest: RebuildProgress | undefined;
  let news = Promise.withResolvers<void>();
  const ended = projector.rebuild((progress) => {
    latest = progress;
    news.resolve();
  });
  // The client may be gone when the rebuild fails; GET on the same path still tells its end.
  ended.catch(() => undefined);
  await Promise.race([news.promise, ended]);
  return {
    ended,
    /** Undefined at the end; of progress that came between two calls only the last is given. */
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

/** Progress, then `result`, or `failed` with its reason. */
const textsOf = ({ ended, next }: Begun): Source =>
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

/** 503 for what this projector cannot do now; any other error is thrown on. */
export const rejectForNow = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (error instanceof RebuildRunning) {
    const why = `a rebuild is under way already; GET ${PLACE} says how far it is`;
    return reject(reply, 'SERVICE_UNAVAILABLE', [why], forNow(error));
  }
  if (error instanceof StandingBy) {
    const why = 'this projector stands by; ask the one that follows the log';
    return reject(reply, 'SERVICE_UNAVAILABLE', [why], forNow(error));
  }
  throw error;
};

const route = <const F extends RequestForm>(own: Route<ProjectionDeps, F>) => own;

export const PROJECTION_ROUTES = {
  listProjections: route({
    request: { allMerchants: true },
    responses: okJson(ProjectionList),
    handle: async ({ projector }, _input, reply) =>
      sendJson(reply, { projections: [await statusOf(projector)] }),
  }),
  rebuildProjections: route({
    request: { allMerchants: true },
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
    handle: async ({ projector, streams }, _input, reply) => {
      try {
        const begun = await begin(projector);
        const { accept } = reply.request.headers;
        const isLive = accept?.toLowerCase().includes(EVENT_STREAM) === true;
        if (isLive && streams.take(reply)) {
          return streams.send(reply, EVENT_STREAM, textsOf(begun), KEEP_ALIVE);
        }
        const started = { status: 'started', progress: PLACE };
        return sendJson(reply.code(202).header('location', PLACE), started);
      } catch (error) {
        return rejectForNow(reply, error);
      }
    },
  }),
} satisfies Partial<RoutesOf<'projector', ProjectionDeps>>;
