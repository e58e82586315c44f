/**
 * All that a span may say, by name: a closed list, which docs/traces.md explains. No address, header,
 * body, message of an error or name of a person is on it; every text is one of our own code or of a
 * form that is checked before.
 */
import { withoutLongNumbers } from './card-numbers.ts';

export type SpanAttributes = {
  'http.request.method'?: string | undefined;
  /** The template of the route, never the address. */
  'http.route'?: string | undefined;
  'http.response.status_code'?: number | undefined;
  /** A code: of our error body, of a failed connection, or the name of an error. */
  'error.type'?: string | undefined;
  'db.system.name'?: string | undefined;
  'db.operation.name'?: string | undefined;
  /** The host of the provider. */
  'server.address'?: string | undefined;
  'messaging.system'?: string | undefined;
  'messaging.operation.type'?: string | undefined;
  'messaging.destination.name'?: string | undefined;
  'messaging.batch.message_count'?: number | undefined;
  'payments.payment_id'?: string | undefined;
  /** What came of a provider call: APPROVED, DECLINED, NOT_SENT, UNKNOWN, … */
  'payments.outcome'?: string | undefined;
  /** Of a webhook message: 1 for the first attempt. */
  'payments.attempt'?: number | undefined;
};

/** Every name of the list. */
export const SPAN_ATTRIBUTES: Readonly<Record<keyof SpanAttributes, true>> = {
  'http.request.method': true,
  'http.route': true,
  'http.response.status_code': true,
  'error.type': true,
  'db.system.name': true,
  'db.operation.name': true,
  'server.address': true,
  'messaging.system': true,
  'messaging.operation.type': true,
  'messaging.destination.name': true,
  'messaging.batch.message_count': true,
  'payments.payment_id': true,
  'payments.outcome': true,
  'payments.attempt': true,
};

/** The attributes as they leave: a text that could hold a card number without it. */
export const cleaned = (attributes: SpanAttributes): Record<string, string | number> => {
  const kept: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    kept[name] = typeof value === 'string' ? withoutLongNumbers(value) : value;
  }
  return kept;
};

const CODE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** The code or the name of an error; never its message, which may quote what it met. */
export const errorTypeOf = (error: unknown): string => {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  const known = [code, name].find((one) => typeof one === 'string' && CODE.test(one));
  return typeof known === 'string' ? known : 'Error';
};
