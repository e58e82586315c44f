/** A service's part of a route: after the auth hooks one reading of the request, and the handler (gaps §1). */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  onSendHookHandler,
} from 'fastify';
import type { z } from 'zod';
import { PAYMENT_ID } from '../payment/fields.ts';
import type { AuthHooks } from './auth/hooks.ts';
import { type ErrorCode, JSON_TYPE, reject, UNAVAILABLE } from './errors.ts';
import { fieldName } from './fields.ts';
import { type Principal, type Read, readJsonBody } from './request.ts';
import { ROUTES, type RouteId, type RouteIdOf, type Service, SIGNED } from './route-table.ts';
import type {} from './server/app.ts';

export type RequestForm = {
  /** A token of one merchant is 403. */
  allMerchants?: true;
  /** A token without `sub` is 403: it is recorded who did it, or two have to agree (gaps §16, §25). */
  person?: true;
  /** The messages of the schema are the contract's, without the name. */
  query?: z.ZodObject;
  paymentId?: ErrorCode;
  /** Each 503 has `Payment-Outcome`. */
  movesMoney?: true;
  /** The path names a webhook endpoint; a malformed id is 404. */
  endpointId?: true;
  /** Reads headers and body; a failure is 400 INVALID_REQUEST. */
  read?: (request: FastifyRequest) => Read<unknown>;
  /** For the API document alone: the body that `read` takes. */
  body?: { schema: z.ZodType; required: boolean };
};

export type Input<F extends RequestForm> = {
  principal: Principal;
  /** Monotonic time of the complete arrival, before parsing: the budget starts here (gaps §11). */
  arrivedAtMs: number;
  query: F extends { query: infer Q extends z.ZodType } ? z.output<Q> : undefined;
  paymentId: F extends { paymentId: ErrorCode } ? string : undefined;
  endpointId: F extends { endpointId: true } ? string : undefined;
  content: F extends { read: (request: FastifyRequest) => Read<infer T> } ? T : undefined;
};

/** `responses`: the schemas of its own bodies, by status and content type; scripts/openapi has the rest. */
export type Route<Deps, F extends RequestForm = RequestForm> = {
  request: F;
  responses: Readonly<Record<number, Readonly<Record<string, z.ZodType>>>>;
  handle: (deps: Deps, input: Input<F>, reply: FastifyReply) => Replied;
};
type Replied = FastifyReply | Promise<FastifyReply>;

export const routeWith =
  <Deps>() =>
  <const F extends RequestForm>(own: Route<Deps, F>): Route<Deps, F> =>
    own;

export type SignedRoute<Deps> = Omit<Route<Deps>, 'handle'> & {
  /** Rejects before the body is read what no body could make well signed; else undefined. */
  rejectAtOnce: (deps: Deps, reply: FastifyReply) => FastifyReply | undefined;
  handle: (deps: Deps, input: undefined, reply: FastifyReply) => Promise<FastifyReply>;
};

export type AnyRoute<Deps> = Omit<Route<Deps>, 'handle'> & {
  rejectAtOnce?: SignedRoute<Deps>['rejectAtOnce'];
  handle: (deps: Deps, input: never, reply: FastifyReply) => Replied;
};

/** All routes of a service: a missing or foreign one does not compile. */
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

/** An id that two tables bind does not compile; a spread would drop one of the handlers. */
export const joinRoutes = <T extends readonly object[]>(
  ...tables: { [At in keyof T]: T[At] & { readonly [Id in IdsOfOthers<T, At>]?: never } }
): Joined<T> => Object.assign({}, ...tables);

export const asJson = (schema: z.ZodType) => ({ 'application/json': schema });

/** `more`: its other forms, by their types. */
export const okJson = (schema: z.ZodType, more: Record<string, z.ZodType> = {}) => ({
  200: { ...asJson(schema), ...more },
});

export const sendJson = (reply: FastifyReply, value: unknown): FastifyReply =>
  reply.type(JSON_TYPE).send(JSON.stringify(value));

/** One for each field (gaps §3), the first; of no field, each. */
const detailsOf = (issues: readonly z.core.$ZodIssue[]): string[] => {
  const details = new Map<string, string>();
  for (const { path, message } of issues) {
    const field = fieldName(path);
    const detail = field === '' ? message : `${field} ${message}`;
    if (!details.has(field || message)) details.set(field || message, detail);
  }
  return [...details.values()];
};

export const readBy = <T>(schema: z.ZodType<T>, value: unknown): Read<T> => {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, details: detailsOf(parsed.error.issues) };
};

export const jsonBody = <T>(schema: z.ZodType<T>) => ({
  read: (request: FastifyRequest): Read<T> => {
    const json: Read<unknown> = readJsonBody(request);
    return json.ok ? readBy(schema, json.value) : json;
  },
  body: { schema, required: true },
});

export const PAYMENT_ID_FORM = 'must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -';

const NO_PAYMENT_ID =
  'paymentId is empty; the list is at /api/v1/payments, without a slash at its end';

const NO_PERSON = 'this command needs a token with sub';

const NOTHING: Read<undefined> = { ok: true, value: undefined };

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
  if (form.allMerchants && principal.merchantId !== '*')
    return rejected('FORBIDDEN', ['a token of all merchants is required']);
  if (form.person && !principal.isPerson) return rejected('FORBIDDEN', [NO_PERSON]);
  const query = form.query === undefined ? NOTHING : readBy(form.query, request.query);
  if (!query.ok) return rejected('INVALID_REQUEST', query.details);
  const { paymentId = '', endpointId } = request.params as Record<string, string>;
  if (form.paymentId !== undefined && !PAYMENT_ID.test(paymentId)) {
    const detail = paymentId === '' ? NO_PAYMENT_ID : `paymentId ${PAYMENT_ID_FORM}`;
    return rejected(form.paymentId, [detail]);
  }
  const content = form.read === undefined ? NOTHING : form.read(request);
  if (!content.ok) return rejected('INVALID_REQUEST', content.details);
  return {
    principal,
    arrivedAtMs,
    query: query.value,
    paymentId: form.paymentId && paymentId,
    endpointId: form.endpointId && endpointId,
    content: content.value,
  } as Input<RequestForm>;
};

/** Without a word of the command nothing was begun; but under a key an earlier request may have been. */
const sayPaymentOutcome: onSendHookHandler = ({ headers, paymentOutcome }, reply, _body, done) => {
  const unbegun = headers['idempotency-key'] === undefined ? 'NOT_CHARGED' : 'UNKNOWN';
  if (reply.statusCode === UNAVAILABLE) reply.header('payment-outcome', paymentOutcome ?? unbegun);
  done();
};

export const registerRoutes = <Deps>(
  app: FastifyInstance,
  authHooks: AuthHooks,
  routes: Readonly<Partial<Record<RouteId, AnyRoute<Deps>>>>,
  deps: NoInfer<Deps>,
): void => {
  for (const [id, { request: form, rejectAtOnce, handle }] of Object.entries(routes)) {
    const { method, path, scope } = ROUTES[id as RouteId];
    const route = { method, url: path };
    if (scope === SIGNED) {
      const rejectUnsigned: onRequestHookHandler = (_request, reply, done) => {
        if (rejectAtOnce?.(deps, reply) === undefined) done();
      };
      const onRequest = [rejectUnsigned, app.takePlace];
      const handler = (_request: FastifyRequest, reply: FastifyReply) =>
        handle(deps, undefined as never, reply);
      app.route({ ...route, onRequest, handler });
      continue;
    }
    const handler = (request: FastifyRequest, reply: FastifyReply) => {
      const input = inputOf(form, request, reply);
      // The form that was read is the form that the handler was written for.
      return input === undefined ? reply : handle(deps, input as never, reply);
    };
    const onSend = form.movesMoney ? [sayPaymentOutcome] : [];
    app.route({ ...route, onRequest: [authHooks(scope), app.takePlace], onSend, handler });
  }
};
