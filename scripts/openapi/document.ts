/**
 * What every API description of the service is made of: components from zod schemas, operations
 * from a table, and examples that were recorded from a running service. A status without a
 * recorded example is refused, and so is a recorded one that no operation names.
 */
import { z } from 'zod';

/** One answer of the running service, with ids and times replaced by stable ones. */
export type Recording = {
  operationId: string;
  /** Names the example, in words. */
  name: string;
  /** The request's body, where it is worth showing. */
  request?: unknown;
  status: number;
  body: unknown;
};

/** A header, parameter or schema object as OpenAPI has it. */
export type Part = Record<string, unknown>;

export type Operation = {
  operationId: string;
  method: 'get' | 'post';
  path: string;
  summary: string;
  description?: string;
  tag: string;
  parameters: Part[];
  /** The name of the request's component. */
  request?: { schema: string; required: boolean };
  /** Status → what it means, the component of its body, and the names of its headers. */
  responses: Record<number, CommandResponse>;
};

export type CommandResponse = {
  description: string;
  /** Content type → the component of the body or a schema; `ErrorBody` as JSON where left out. */
  content?: Record<string, string | Part>;
  /** There is no recording of it: it has no end, or nothing makes it happen. */
  unrecorded?: true;
  /** Names in components.headers; those of every answer and of every error are added. */
  headers?: string[];
};

const JSON_TYPE = 'application/json';

export const refTo = (kind: 'schemas' | 'headers' | 'parameters', name: string): Part => ({
  $ref: `#/components/${kind}/${name}`,
});

/** Named zod schemas as OpenAPI components, sorted by name. Exports that are no schema are left out. */
export const schemasOf = (modules: readonly Record<string, unknown>[]): Part => {
  const registry = z.registry<{ id: string }>();
  const named = modules.flatMap((module) => Object.entries(module));
  for (const [id, schema] of named) if (schema instanceof z.ZodType) registry.add(schema, { id });
  const uri = (id: string) => `#/components/schemas/${id}`;
  const { schemas } = z.toJSONSchema(registry, { io: 'input', uri });
  const entries = Object.entries(schemas).map(([name, { $schema: _, $id: __, ...schema }]) => [
    name,
    schema,
  ]);
  return Object.fromEntries(entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
};

const header = (description: string, schema: Part, required = true): Part => ({
  description,
  required,
  schema: { type: 'string', ...schema },
});

export const HEADERS: Readonly<Record<string, Part>> = {
  'Request-Id': header('Names this request in the log.', { pattern: '^[0-9A-Z]{26}$' }),
  'Cache-Control': header('Nothing is kept on the way.', { const: 'no-store' }),
  ETag: header('The revision of the payment.', { pattern: '^"[0-9]+"$' }),
  Link: header('Leads to what docs/errors.md says of this error.', {
    pattern: '^</docs/errors#[a-z_]+>; rel="help"$',
  }),
  'Retry-After': header('Seconds to wait before another try.', { pattern: '^[1-9][0-9]*$' }),
  'WWW-Authenticate': header('How to authenticate.', { const: 'Bearer' }),
  Location: header(
    'The payment, where there is one to look at.',
    { pattern: '^/api/v1/payments/[A-Za-z0-9_-]{1,32}$' },
    false,
  ),
  'Idempotent-Replayed': header(
    'There when another request under this key did it.',
    { const: 'true' },
    false,
  ),
};

const camel = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9]+(.)?/g, (_all, letter: string | undefined) =>
      (letter ?? '').toUpperCase(),
    )
    .replace(/^[A-Z]/, (first) => first.toLowerCase());

const examplesOf = (recordings: readonly Recording[], shownOf: (one: Recording) => unknown): Part =>
  Object.fromEntries(
    recordings.map((one) => [camel(one.name), { summary: one.name, value: shownOf(one) }]),
  );

const headersOf = (status: number, { headers = [] }: CommandResponse): Part => {
  const names = ['Request-Id', 'Cache-Control', ...(status >= 400 ? ['Link'] : []), ...headers];
  return Object.fromEntries(names.map((name) => [name, refTo('headers', name)]));
};

const responseOf = (status: number, response: CommandResponse, recordings: Recording[]): Part => {
  const content = response.content ?? { [JSON_TYPE]: 'ErrorBody' };
  return {
    description: response.description,
    headers: headersOf(status, response),
    content: Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [
        type,
        {
          schema: typeof schema === 'string' ? refTo('schemas', schema) : schema,
          ...(type === JSON_TYPE &&
            recordings.length > 0 && { examples: examplesOf(recordings, ({ body }) => body) }),
        },
      ]),
    ),
  };
};

const requestBodyOf = (operation: Operation, recordings: Recording[]): Part => {
  if (operation.request === undefined) return {};
  const { schema, required } = operation.request;
  const shown = recordings.filter(({ request, status }) => request !== undefined && status < 403);
  const examples = examplesOf(
    shown.filter(({ status }) => status !== 400),
    ({ request }) => request,
  );
  const content = { [JSON_TYPE]: { schema: refTo('schemas', schema), examples } };
  return { requestBody: { required, content } };
};

const operationOf = (operation: Operation, recordings: Recording[]): Part => {
  const { operationId, summary, description, tag, parameters } = operation;
  const own = recordings.filter((one) => one.operationId === operationId);
  const responses = Object.entries(operation.responses).map(([key, response]) => {
    const status = Number(key);
    const examples = own.filter((one) => one.status === status);
    if (examples.length === 0 && !response.unrecorded)
      throw new Error(`${operationId} ${status} was not recorded`);
    return [key, responseOf(status, response, examples)];
  });
  const stray = own.find(({ status }) => operation.responses[status] === undefined);
  if (stray) throw new Error(`${operationId}: ${stray.status} (${stray.name}) is not described`);
  return {
    tags: [tag],
    operationId,
    summary,
    ...(description !== undefined && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...requestBodyOf(operation, own),
    responses: Object.fromEntries(responses),
  };
};

/** The paths of a document. Throws where operations and recordings do not fit together. */
export const pathsOf = (operations: readonly Operation[], recordings: Recording[]): Part => {
  const paths: Record<string, Part> = {};
  for (const operation of operations) {
    const { path, method } = operation;
    paths[path] = { ...paths[path], [method]: operationOf(operation, recordings) };
  }
  return paths;
};

export const SECURITY = {
  security: [{ bearer: [] }],
  securitySchemes: {
    bearer: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'On a local service `npx payments token` prints one.',
    },
  },
};
