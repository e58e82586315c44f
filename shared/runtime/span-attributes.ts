/** A closed list (docs/traces.md): no address, header, body, error message or name of a person. */
import { withoutLongNumbers } from './card-numbers.ts';

export const SPAN_ATTRIBUTES = {
  'http.request.method': 'string',
  'http.route': 'string',
  'http.response.status_code': 'number',
  /** A code of our error body or a failed connection, or an error's name. */
  'error.type': 'string',
  'db.system.name': 'string',
  'db.operation.name': 'string',
  'server.address': 'string',
  'messaging.system': 'string',
  'messaging.operation.type': 'string',
  'messaging.destination.name': 'string',
  'messaging.batch.message_count': 'number',
  'payments.payment_id': 'string',
  /** Of a provider call: APPROVED, DECLINED, NOT_SENT, UNKNOWN, … */
  'payments.outcome': 'string',
  'payments.attempt': 'number',
} as const;

type List = typeof SPAN_ATTRIBUTES;
export type SpanAttributes = {
  [Name in keyof List]?: (List[Name] extends 'string' ? string : number) | undefined;
};

export const cleaned = (attributes: SpanAttributes): Record<string, string | number> => {
  const kept: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    kept[name] = typeof value === 'string' ? withoutLongNumbers(value) : value;
  }
  return kept;
};

const CODE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** Never the message, which may quote what it met. */
export const errorTypeOf = (error: unknown): string => {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  const known = [code, name].find((one) => typeof one === 'string' && CODE.test(one));
  return typeof known === 'string' ? known : 'Error';
};
