/**
 * What a service binds to an id of route-table.ts, and how it comes to be served: the auth hooks
 * before the body is read, then one reading of the request in the contract's words, then the
 * handler (gaps §1).
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { PAYMENT_ID } from '../payment/event-fields.ts';
import type { AuthHooks } from './auth/hooks.ts';
import type { Principal } from './auth/principal.ts';
import { type ErrorCode, JSON_TYPE, reject } from './errors.ts';
import { fieldName } from './fields.ts';
import { ROUTES, type RouteId, type RouteIdOf, type Service, SIGNED } from './route-table.ts';
import type {} from './server/app.ts';

/** What was read, or what `details` say of what could not be. */
export type Read<T> = { ok: true; value: T } | { ok: false; details: string[] };

/** What a route reads of a request, in the order in which it is checked. */
export type RequestForm = {
  /** A token of one merchant is 403: the route is about all of them. */
  allMerchants?: true;
  /** A token without `sub` is 403: two persons have to say it (gaps §16). */
  person?: true;
  /** The query parameters. The messages of the schema are the contract's, without the name. */
  query?: z.ZodObject;
  /** The code for a `:paymentId` that is not well formed. */
  paymentId?: ErrorCode;
  /** The path names a webhook endpoint; one that is not well formed does not exist. */
  endpointId?: true;
  /** Reads headers and body; what it does not accept is 400 INVALID_REQUEST. */
  read?: (request: FastifyRequest) => Read<unknown>;
  /** For the API document alone: what `read` takes. */
  body?: { schema: z.ZodType; required: boolean };
  /** For the API document alone: the headers that `read` looks at, and those that are ignored. */
  headers?: readonly ('IdempotencyKey' | 'UserAgent' | 'StripeSignature')[];
};

/** What a handler is given: who sent the request, and what its form has read. */
export type Input<F extends RequestForm> = {
  principal: Principal;
  /**
   * When the request was there whole and nothing of its content had been read yet, in milliseconds
   * of the monotonic clock: its budget starts then (gaps §11).
   */
  arrivedAtMs: number;
  query: F extends { query: infer Q extends z.ZodType } ? z.output<Q> : undefined;
  paymentId: F extends { paymentId: ErrorCode } ? string : undefined;
  endpointId: F extends { endpointId: true } ? string : undefined;
  content: F extends { read: (request: FastifyRequest) => Read<infer T> } ? T : undefined;
};

export type ResponseHeader =
  | 'ETag'
  | 'Idempotent-Replayed'
  | 'Location'
  | 'Retry-After'
  | 'WWW-Authenticate';

/** One status of a route, for the API document. */
export type ResponseForm = {
  description: string;
  /** Content type → the body. The error body as JSON where left out. */
  content?: Readonly<Record<string, z.ZodType>>;
  headers?: readonly ResponseHeader[];
  /** There is no recorded example: it has no end, or nothing makes it happen. */
  unrecorded?: true;
};

/**
 * A route as its service has it. `responses` are its own alone: standard-responses.ts has what the
 * hooks, the server and the reading of a request respond.
 */
export type Route<Deps, F extends RequestForm = RequestForm> = {
  request: F;
  responses: Readonly<Record<number, ResponseForm>>;
  handle: (
    deps: Deps,
    input: Input<F>,
    reply: FastifyReply,
  ) => FastifyReply | Promise<FastifyReply>;
};

/** Writes routes that are given `Deps`: the type of each keeps its form, by which its handler gets its input. */
export const routeWith =
  <Deps>() =>
  <const F extends RequestForm>(own: Route<Deps, F>): Route<Deps, F> =>
    own;

/** A route that takes a signature in the place of a token: it reads the whole request by itself. */
export type SignedRoute<Deps> = Omit<Route<Deps>, 'handle'> & {
  /** Rejects what no body could make well signed, before it is read; undefined for all else. */
  rejectAtOnce: (deps: Deps, reply: FastifyReply) => FastifyReply | undefined;
  handle: (deps: Deps, input: undefined, reply: FastifyReply) => Promise<FastifyReply>;
};

/** A route whose form is not known any more. */
export type AnyRoute<Deps> = Omit<Route<Deps>, 'handle'> & {
  rejectAtOnce?: SignedRoute<Deps>['rejectAtOnce'];
  handle: (deps: Deps, input: never, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>;
};

/** All routes of a service: one that is missing, or is another service's, does not compile. */
export type RoutesOf<S extends Service, Deps> = Readonly<Record<RouteIdOf<S>, AnyRoute<Deps>>>;

type Joined<T extends readonly object[]> = T extends readonly [
  infer One,
  ...infer More extends object[],
]
  ? One & Joined<More>
  : object;
type IdsOfOthers<T extends readonly object[], At> = {
  [Other in keyof T]: Other extends At ? never : keyof T[Other];
}[number];

/**
 * Tables of routes as one. A route id that two of them bind does not compile: with a spread one of the
 * two handlers would be dropped in silence.
 */
export const joinRoutes = <T extends readonly object[]>(
  ...tables: { [At in keyof T]: T[At] & { readonly [Id in IdsOfOthers<T, At>]?: never } }
): Joined<T> => Object.assign({}, ...tables);

export const asJson = (schema: z.ZodType) => ({ 'application/json': schema });

/** The one 200 of a route that responds with JSON and needs no words about it. */
export const okJson = (schema: z.ZodType) => ({
  200: { description: 'The response.', content: asJson(schema) },
});

export const sendJson = (reply: FastifyReply, value: unknown): FastifyReply =>
  reply.type(JSON_TYPE).send(JSON.stringify(value));

const detailOf = ({ path, message }: z.core.$ZodIssue): string =>
  path.length === 0 ? message : `${fieldName(path)} ${message}`;

/** Reads a value by a schema whose messages are the contract's wordings. */
export const readBy = <T>(schema: z.ZodType<T>, value: unknown): Read<T> => {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, details: [...new Set(parsed.error.issues.map(detailOf))] };
};

/** What `details` say of a paymentId that is not well formed. */
export const PAYMENT_ID_FORM = 'paymentId must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -';

/** The paymentId of a path when it is well formed (gaps §2), else undefined. */
export const parsePaymentId = (raw: string): string | undefined =>
  PAYMENT_ID.test(raw) ? raw : undefined;

/** What `details` say of a token that names no person (gaps §16). */
export const NO_PERSON = 'this command needs a token with sub';

const NOTHING: Read<undefined> = { ok: true, value: undefined };

/** The handler's input; undefined when the request has been rejected. */
const inputOf = (
  form: RequestForm,
  request: FastifyRequest,
  reply: FastifyReply,
): Input<RequestForm> | undefined => {
  const arrivedAtMs = performance.now();
  const { principal } = request;
  if (principal === undefined) throw new Error('the route has no authenticate hook');
  const rejected = (code: ErrorCode, details: string[]): undefined => {
    reject(reply, code, details);
  };
  if (form.allMerchants && principal.merchantId !== '*') {
    return rejected('FORBIDDEN', ['a token of all merchants is required']);
  }
  if (form.person && !principal.isPerson) return rejected('FORBIDDEN', [NO_PERSON]);
  const query = form.query === undefined ? NOTHING : readBy(form.query, request.query);
  if (!query.ok) return rejected('INVALID_REQUEST', query.details);
  let paymentId: string | undefined;
  if (form.paymentId !== undefined) {
    paymentId = parsePaymentId((request.params as { paymentId: string }).paymentId);
    if (paymentId === undefined) return rejected(form.paymentId, [PAYMENT_ID_FORM]);
  }
  const content = form.read === undefined ? NOTHING : form.read(request);
  if (!content.ok) return rejected('INVALID_REQUEST', content.details);
  // A form says at compile time what its handler is given; here only its values are known.
  return {
    principal,
    arrivedAtMs,
    query: query.value,
    paymentId,
    endpointId: form.endpointId && (request.params as { endpointId: string }).endpointId,
    content: content.value,
  } as Input<RequestForm>;
};

/** Registers routes on an app that has been built (server/app.ts); each is given `deps`. */
export const registerRoutes = <Deps>(
  app: FastifyInstance,
  authHooks: AuthHooks,
  routes: Readonly<Partial<Record<RouteId, AnyRoute<Deps>>>>,
  deps: NoInfer<Deps>,
): void => {
  for (const [id, { request: form, rejectAtOnce, handle }] of Object.entries(routes)) {
    const { method, path, scope } = ROUTES[id as RouteId];
    if (scope === SIGNED) {
      app.route({
        method,
        url: path,
        onRequest: [
          (_request, reply, done) => {
            if (rejectAtOnce?.(deps, reply) === undefined) done();
          },
          app.takePlace,
        ],
        handler: (_request, reply) => handle(deps, undefined as never, reply),
      });
      continue;
    }
    app.route({
      method,
      url: path,
      onRequest: [...authHooks(scope), app.takePlace],
      handler: (request, reply) => {
        const input = inputOf(form, request, reply);
        // The form that was read is the form that the handler was written for.
        return input === undefined ? reply : handle(deps, input as never, reply);
      },
    });
  }
};
