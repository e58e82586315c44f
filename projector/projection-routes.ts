/**
 * The operator's routes over the read models as a whole: how far they are, and filling them anew
 * (ADR-0015). Scope `ops:admin`, and a token of all merchants: they hold everybody's payments.
 */
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { speaksForAll } from '../shared/http/auth/authorize.ts';
import { JSON_TYPE, REJECTION_HEADER, reject } from '../shared/http/errors.ts';
import type {} from '../shared/http/server/app.ts';
import {
  createStreams,
  EVENT_STREAM,
  KEEP_ALIVE,
  type Source,
  serverSent,
} from '../shared/http/server/streams.ts';
import { RebuildRunning } from '../shared/read-models/errors.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Projector } from './compose.ts';
import { StandingBy } from './errors.ts';
import type { RebuildProgress, RebuildResult } from './rebuild.ts';

export type ProjectionRoutes = {
  /** Token and scope `ops:admin`. */
  authorize: onRequestHookHandler;
  projector: Pick<Projector, 'status' | 'lag' | 'rebuild' | 'rebuilds'>;
};

/** Long enough that whoever asks again at once has a chance. */
/** Says when to ask again, and why not now, for a program: two reasons share one error code. */
const forNow = ({ code }: RebuildRunning | StandingBy) => ({
  'retry-after': '5',
  [REJECTION_HEADER]: code,
});
const PLACE = '/ops/v1/projections';

const statusOf = async ({ status, lag, rebuilds }: ProjectionRoutes['projector']) => {
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

/** Resolves once it has begun. Throws what it is refused with. */
const begin = async (projector: ProjectionRoutes['projector']): Promise<Begun> => {
  let latest: RebuildProgress | undefined;
  let news = Promise.withResolvers<void>();
  const ended = projector.rebuild((progress) => {
    latest = progress;
    news.resolve();
  });
  // Nobody may be listening any more when it fails; what became of it stays to be asked for.
  ended.catch(() => undefined);
  await Promise.race([news.promise, ended]);
  return {
    ended,
    /** Undefined at the end; progress that came while nobody asked is told as its last alone. */
    next: async () => {
      const isOver = await Promise.race([
        news.promise.then(() => false),
        ended.then(
          () => true,
          () => true,
        ),
      ]);
      if (isOver && latest === undefined) return undefined;
      const told = latest;
      latest = undefined;
      news = Promise.withResolvers<void>();
      return told;
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
    for (let told = await nextOrLeft(); told !== undefined; told = await nextOrLeft()) {
      yield serverSent('progress', told);
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

/** Registers the routes on an app that has been built (shared/http/server/app.ts). */
export const registerProjectionRoutes = (
  app: FastifyInstance,
  { authorize: onRequest, projector }: ProjectionRoutes,
): void => {
  const streams = createStreams(app);

  app.get(PLACE, { onRequest }, async (request, reply) => {
    if (!speaksForAll(request, reply)) return reply;
    const projections = [await statusOf(projector)];
    return reply.type(JSON_TYPE).send(JSON.stringify({ projections }));
  });

  app.post(`${PLACE}/rebuild`, { onRequest }, async (request, reply) => {
    if (!speaksForAll(request, reply)) return reply;
    try {
      const begun = await begin(projector);
      const isLive = request.headers.accept?.toLowerCase().includes(EVENT_STREAM) === true;
      if (isLive && streams.take(reply)) {
        return streams.send(reply, EVENT_STREAM, textsOf(begun), KEEP_ALIVE);
      }
      const body = { status: 'started', progress: PLACE };
      return reply.code(202).header('location', PLACE).type(JSON_TYPE).send(JSON.stringify(body));
    } catch (error) {
      return rejectForNow(reply, error);
    }
  });
};
