/** An API document from routes, schemas and recorded responses, which have to fit one another. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { AUDIT_ROUTES } from '../../audit/routes.ts';
import { COMMAND_ROUTES } from '../../command-api/routes.ts';
import manifest from '../../package.json' with { type: 'json' };
import { PROJECTOR_ROUTES } from '../../projector/routes.ts';
import { QUERY_ROUTES } from '../../query-api/routes.ts';
import { isOfMerchants } from '../../shared/http/auth/tokens.ts';
import { ErrorBody } from '../../shared/http/payment-schemas.ts';
import type { AnyRoute, RequestForm } from '../../shared/http/route.ts';
import { ROUTES, type RouteId, type RoutePlace, SIGNED } from '../../shared/http/route-table.ts';

type Part = Record<string, unknown>;

/** `name` names the example; `request` is the request's body, where the document shows it. */
export type Recording = {
  id: RouteId;
  name: string;
  request?: unknown;
  status: number;
  body: unknown;
};

export const BOUND: Readonly<Record<RouteId, Omit<AnyRoute<never>, 'handle'>>> = {
  ...COMMAND_ROUTES,
  ...QUERY_ROUTES,
  ...AUDIT_ROUTES,
  ...PROJECTOR_ROUTES,
};

const JSON_TYPE = 'application/json';
const LICENSE = { name: 'MIT', identifier: 'MIT' };

type Tag = 'Payments' | 'Webhooks' | 'Audit' | 'Operations';

export const textsOf = (file: string) =>
  parse(readFileSync(join(import.meta.dirname, file), 'utf8'), { merge: true });

type ResponseForm = {
  description: string;
  /** Content type → the body. Left out: the error body as JSON. */
  content?: Readonly<Record<string, z.ZodType>>;
  headers?: readonly string[];
  /** No example for merchants can be recorded: it has no end, or nothing causes it. */
  unrecorded?: true;
};
const RESPONSE = { description: 'The response.' };

type Texts = {
  /** Names of parameters: those that the route reads or ignores. */
  headers?: string[];
  summary: string;
  description: string;
  responses?: Record<string, Partial<ResponseForm>>;
};

const TEXTS: Partial<Record<RouteId, Texts>> = textsOf('routes.yaml');

type Components = Record<'exclusive' | 'parameters' | 'headers', Record<string, Part>>;
const { exclusive: EXCLUSIVE, ...COMPONENTS }: Components = textsOf('components.yaml');

const FIELDS: Record<string, string | Record<string, string>> = textsOf('fields.yaml');

type Responses = Record<number, ResponseForm>;

const SHARED: {
  base: Part;
  securitySchemes: Part;
  responses: Record<'merchants' | 'others', Responses>;
} = textsOf('documents.yaml');

/** The bodies in which a `null` counts as absent (gaps §3), but as an amount; no response has these schemas. */
const WITH_NULLS =
  /^(PaymentRequest|Card|CardByToken|ThreeDSecure|PreviousFailure|CaptureRequest|RefundRequest|Webhook(EndpointRequest|EndpointChange|Rotation|Resend))$/;

/** With the text of fields.yaml for a field without one, where its name does not say it all. */
const withTexts = (schema: Part, schemaName: string): Part => {
  const ofSchema: Record<string, string> = Object(FIELDS[schemaName]);
  const inside = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(inside);
    return typeof part === 'object' && part !== null ? withTexts(part as Part, schemaName) : part;
  };
  const orNull = (one: Part, name: string): Part => {
    const { type, enum: values } = one;
    const isLeaf = typeof type === 'string' && !/amount$/i.test(name);
    if (!isLeaf || !WITH_NULLS.test(schemaName) || [schema.required].flat().includes(name))
      return one;
    return {
      ...one,
      type: [type, 'null'],
      ...(Array.isArray(values) && { enum: [...values, null] }),
    };
  };
  const field = (one: Part, name: string): Part => {
    const texts = orNull(inside(one) as Part, name);
    if (one.description !== undefined || one.$ref !== undefined) return texts;
    const description = ofSchema[name] ?? FIELDS[name];
    return description === undefined ? texts : { description, ...texts };
  };
  return mapped(schema, (part, key) =>
    key === 'properties' ? mapped(part as Record<string, Part>, field) : inside(part),
  );
};

const tagOf = (id: RouteId): Tag => {
  const { scope, path } = ROUTES[id];
  if (scope.startsWith('ops:') || scope === SIGNED) return 'Operations';
  if (scope === 'audit:read') return 'Audit';
  return path.startsWith('/api/v1/webhook-') ? 'Webhooks' : 'Payments';
};

const mapped = <A, B>(of: Readonly<Record<string, A>>, to: (value: A, name: string) => B) =>
  Object.fromEntries(Object.entries(of).map(([name, value]) => [name, to(value, name)]));

const refTo = (kind: 'schemas' | 'headers' | 'parameters', name: string): Part => ({
  $ref: `#/components/${kind}/${name}`,
});

const withoutIds = ({ $schema: _, $id: __, ...schema }: Part): Part => schema;

const namedSchemas = (): Record<string, Part> => {
  for (const [id, { request }] of Object.entries(BOUND)) {
    if (request.query !== undefined) z.globalRegistry.add(request.query, { id: `${id}Query` });
  }
  const uri = (id: string) => `#/components/schemas/${id}`;
  const { schemas } = z.toJSONSchema(z.globalRegistry, { io: 'input', uri });
  const byName = Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  return mapped(Object.fromEntries(byName), (schema, name) => ({
    ...withTexts(withoutIds(schema), name),
    ...EXCLUSIVE[name],
  }));
};

export const schemaOf = (schema: z.ZodType): Part => {
  const { id } = z.globalRegistry.get(schema) ?? {};
  return id ? refTo('schemas', id) : withoutIds(z.toJSONSchema(schema, { io: 'input' }));
};

type Query = { properties?: Record<string, Part>; required?: string[] };

const queryParameters = ({ properties = {}, required: names = [] }: Query): Part[] =>
  Object.entries(properties).map(([name, { description, ...schema }]) => {
    const required = names.includes(name);
    return { name, in: 'query', required, description, schema };
  });

const camel = (name: string): string =>
  (name.charAt(0).toLowerCase() + name.slice(1)).replace(/\W+(.)/g, (_all, letter: string) =>
    letter.toUpperCase(),
  );

const examplesOf = (recordings: readonly Recording[], shownOf: (one: Recording) => unknown): Part =>
  Object.fromEntries(
    recordings.map((one) => [camel(one.name), { summary: one.name, value: shownOf(one) }]),
  );

const responseOf = (status: number, response: ResponseForm, recordings: Recording[]): Part => {
  const { description, content = { [JSON_TYPE]: ErrorBody }, headers = [] } = response;
  const names = ['Request-Id', 'Cache-Control', ...(status >= 400 ? ['Link'] : []), ...headers];
  const examples = recordings.length > 0 && { examples: examplesOf(recordings, (one) => one.body) };
  return {
    description,
    headers: Object.fromEntries(names.map((name) => [name, refTo('headers', name)])),
    content: mapped(content, (schema, type) => ({
      schema: schemaOf(schema),
      ...(type === JSON_TYPE && examples),
    })),
  };
};

/** Their document shows each of their responses; of other routes there is one example. */
export const isForMerchants = ({ scope }: RoutePlace): boolean =>
  scope !== SIGNED && isOfMerchants(scope);

const forbidden = (place: RoutePlace, { person, allMerchants }: RequestForm): string => {
  const of = allMerchants ? 'one' : isForMerchants(place) && 'no single';
  return `The token lacks the scope${person ? ' or a `sub`' : ''}${of ? `, or is for ${of} merchant` : ''}.`;
};

const malformed = (place: RoutePlace): string => {
  if (isForMerchants(place)) return 'The request is malformed; `details` name what is wrong.';
  return place.method === 'GET'
    ? 'A parameter is malformed, or not known.'
    : 'The paymentId or the body is malformed.';
};

export const mayBeTooLarge = ({ method, path }: RoutePlace, form: RequestForm): boolean =>
  (method === 'POST' || method === 'PATCH') &&
  (form.body !== undefined || path.includes(':paymentId'));

const standardResponses = (place: RoutePlace, form: RequestForm): Responses => {
  const tooLarge: Responses = mayBeTooLarge(place, form)
    ? { 413: { description: 'The body is above 64 KiB.' } }
    : {};
  if (place.scope === SIGNED) return tooLarge;
  const thing = form.paymentId === undefined ? 'webhook endpoint' : 'payment';
  const missing = isForMerchants(place)
    ? `The merchant has no such ${thing}.`
    : `No such ${thing} to be seen.`;
  return {
    ...SHARED.responses[isForMerchants(place) ? 'merchants' : 'others'],
    403: { description: forbidden(place, form) },
    ...((form.query ?? form.paymentId ?? form.read) !== undefined && {
      400: { description: malformed(place) },
    }),
    ...((form.paymentId ?? form.endpointId) !== undefined && { 404: { description: missing } }),
    ...tooLarge,
  };
};

const responsesOf = (id: RouteId, recordings: Recording[]): Part => {
  const { request, responses: bodies } = BOUND[id];
  const standard = standardResponses(ROUTES[id], request);
  const texts = TEXTS[id]?.responses ?? {};
  const responses = mapped({ ...standard, ...bodies, ...texts }, (_, status): ResponseForm => {
    const content = bodies[Number(status)];
    return {
      ...RESPONSE,
      ...standard[Number(status)],
      ...(content && { content }),
      ...texts[status],
    };
  });
  const stray = recordings.find(({ status }) => responses[status] === undefined);
  if (stray) throw new Error(`${id}: ${stray.status} (${stray.name}) is not described`);
  const showsAll = isForMerchants(ROUTES[id]);
  if (!showsAll && recordings.length !== 1) throw new Error(`${id} has to be recorded once`);
  return mapped(responses, (response, status) => {
    const shown = recordings.filter((one) => one.status === Number(status));
    if (showsAll && shown.length === 0 && !response.unrecorded)
      throw new Error(`${id}: ${status} was not recorded`);
    return responseOf(Number(status), response, shown);
  });
};

const requestBodyOf = (id: RouteId, recordings: Recording[]): Part => {
  const { body } = BOUND[id].request;
  if (body === undefined) return {};
  const shown = recordings.filter(({ request }) => request !== undefined);
  const examples = examplesOf(shown, ({ request }) => request);
  const content = { [JSON_TYPE]: { schema: schemaOf(body.schema), examples } };
  return { requestBody: { required: body.required, content } };
};

const operationOf = (id: RouteId, tag: string, query: Query, all: Recording[]): Part => {
  const { path, scope } = ROUTES[id];
  const recordings = all.filter((one) => one.id === id);
  const { responses: _, headers = [], ...texts } = TEXTS[id] ?? {};
  const named = [
    ...Object.keys(COMPONENTS.parameters).filter((name) => path.includes(`:${camel(name)}`)),
    ...headers,
  ];
  const parameters = [...named.map((name) => refTo('parameters', name)), ...queryParameters(query)];
  return {
    tags: [tag],
    operationId: id,
    ...texts,
    ...(scope === SIGNED && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...requestBodyOf(id, recordings),
    responses: responsesOf(id, recordings),
  };
};

const componentsOf = (part: unknown, all: Record<string, Record<string, Part>>): Part => {
  const refsIn = (at: unknown) =>
    [...JSON.stringify(at).matchAll(/"\$ref":"#\/components\/([^"]+)"/g)].map(
      ([, ref = '']) => ref,
    );
  // The loop reaches what it adds.
  const found = new Set(refsIn(part));
  for (const ref of found) {
    const [kind = '', name = ''] = ref.split('/');
    for (const more of refsIn(all[kind]?.[name])) found.add(more);
  }
  const isFound = (kind: string, name: string) => found.has(`${kind}/${name}`);
  return mapped(all, (parts, kind) =>
    Object.fromEntries(Object.entries(parts).filter(([name]) => isFound(kind, name))),
  );
};

type DocumentForm = {
  title: string;
  description: string;
  tags: Readonly<Partial<Record<Tag, string>>>;
  /** What the service sends, with references by `schemaOf`. */
  webhooks?: Part;
};

/** Throws where routes and recordings do not fit together. */
export const documentOf = (form: DocumentForm, recordings: Recording[]): Part => {
  const { title, description, tags, webhooks } = form;
  const sent = webhooks && { webhooks };
  const schemas = namedSchemas();
  const paths: Record<string, Part> = {};
  for (const id of Object.keys(TEXTS) as RouteId[]) {
    const { method, path } = ROUTES[id];
    const tag = tagOf(id);
    if (tags[tag] === undefined) continue;
    const template = path.replaceAll(/:(\w+)/g, '{$1}');
    const operation = operationOf(id, tag, schemas[`${id}Query`] ?? {}, recordings);
    paths[template] = { ...paths[template], [method.toLowerCase()]: operation };
  }
  return {
    openapi: '3.1.0',
    info: { title, description, version: manifest.version, license: LICENSE },
    ...SHARED.base,
    tags: Object.entries(tags).map(([name, what]) => ({ name, description: what })),
    paths,
    ...sent,
    components: {
      securitySchemes: SHARED.securitySchemes,
      ...componentsOf({ ...paths, ...sent }, { ...COMPONENTS, schemas }),
    },
  };
};
