/**
 * Holds every answer that a test receives under /api/v1 against docs/openapi.json: its status, its
 * headers, its content type and its body, in which nothing may stand that is not described.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

type Schema = Record<string, unknown>;
type Ref = { $ref: string };
type Header = { required: boolean; schema: Schema };
type Response = { headers: Record<string, Ref>; content: Record<string, { schema: Schema }> };
type Operation = { responses: Record<string, Response> };
type Description = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; headers: Record<string, Header> };
};

export type Received = {
  method: string;
  path: string;
  status: number;
  headers: Record<string, unknown>;
  text: string;
};

const FILE = join(import.meta.dirname, '../../../docs/openapi.json');
/** Where an operation has no such status: the router's refusals and the transport's. */
const OUTSIDE = [404, 405, 408, 413, 417, 431, 503];
const TRANSPORT = [405, 408, 417, 431];

const isWriteOnly = (schema: unknown): boolean => Object(schema).writeOnly === true;

/** As an answer has to be: what only a request may hold is gone, and nothing unnamed is let in. */
const closed = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).filter(([, inner]) => !isWriteOnly(inner));
  const whole = Object.fromEntries(entries.map(([key, inner]) => [key, closed(inner)]));
  return 'properties' in whole ? { ...whole, additionalProperties: false } : whole;
};

const load = () => {
  const description = JSON.parse(readFileSync(FILE, 'utf8')) as Description;
  const { schemas, headers } = description.components;
  // That the schemas are ones is for test/query-api/api-description.test.ts: it would cost each file 0.3 s.
  const ajv = new Ajv2020({ allErrors: true, strict: false, meta: false, validateSchema: false });
  formats.default(ajv);
  ajv.addSchema({ $id: 'api', components: { schemas: closed(schemas) } });
  const routes = Object.entries(description.paths).map(([template, operations]) => ({
    pattern: new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]*')}$`),
    operations,
  }));
  const validators = new Map<string, ValidateFunction>();
  const validatorOf = (pointer: string): ValidateFunction => {
    const known = validators.get(pointer) ?? ajv.compile({ $ref: `api${pointer}` });
    validators.set(pointer, known);
    return known;
  };
  const headerOf = ({ $ref }: Ref): Header => {
    const header = headers[$ref.split('/').at(-1) ?? ''];
    if (header === undefined) throw new Error(`no header ${$ref}`);
    return header;
  };
  return { ajv, routes, validatorOf, headerOf };
};

let loaded: ReturnType<typeof load> | undefined;

const bodyProblems = (schema: Schema, { text }: Received): string[] => {
  loaded ??= load();
  const validate = loaded.validatorOf(String(schema.$ref));
  if (validate(JSON.parse(text))) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
};

const headerProblems = (headers: Response['headers'], received: Received): string[] => {
  const { ajv, headerOf } = loaded ?? load();
  return Object.entries(headers).flatMap(([name, ref]) => {
    const { required, schema } = headerOf(ref);
    const value = received.headers[name.toLowerCase()];
    if (value === undefined) return required ? [`the header ${name} is missing`] : [];
    return ajv.validate(schema, String(value)) ? [] : [`the header ${name} is ${value}`];
  });
};

const ERROR_BODY: Schema = { $ref: '#/components/schemas/ErrorBody' };

const problemsOf = (received: Received): string[] => {
  loaded ??= load();
  const path = received.path.split('?', 1)[0] ?? '';
  const route = loaded.routes.find(({ pattern }) => pattern.test(path));
  const operation = route?.operations[received.method.toLowerCase()];
  const response = operation?.responses[received.status];
  if (response === undefined) {
    const allowed = operation === undefined ? OUTSIDE : TRANSPORT;
    if (!allowed.includes(received.status)) return ['this status is not described'];
    return received.method === 'HEAD' ? [] : bodyProblems(ERROR_BODY, received);
  }
  const type = String(received.headers['content-type']).split(';', 1)[0] ?? '';
  const content = response.content[type];
  if (content === undefined) return [`the content type ${type} is not described`];
  return [...headerProblems(response.headers, received), ...bodyProblems(content.schema, received)];
};

/** Throws where an answer is not as the API description says. */
export const expectDescribed = (received: Received): void => {
  if (!received.path.startsWith('/api/v1/')) return;
  const problems = problemsOf(received);
  if (problems.length === 0) return;
  const { method, path, status, text } = received;
  throw new Error(
    `docs/openapi.json describes ${method} ${path.slice(0, 80)} ${status} otherwise:\n${problems.join('\n')}\n${text.slice(0, 2000)}`,
  );
};
