/** The span of an attempt; one that is made again much later is a trace of its own. */
import { during, SAME_TRACE_MS, sampledPlace, startSpan } from '../../shared/runtime/tracing.ts';
import type { SendOutcome } from './send.ts';

type DeliveryTrace = {
  type: string;
  attempt: number;
  traceparent: string | undefined;
  ageMs: number;
};

export const tracedDelivery = async (
  { type, attempt, traceparent, ageMs }: DeliveryTrace,
  send: () => Promise<SendOutcome>,
): Promise<SendOutcome> => {
  const place = sampledPlace(traceparent);
  if (place === undefined) return send();
  const [parent, links] = ageMs < SAME_TRACE_MS ? [place, []] : [undefined, [place]];
  const attributes = { 'payments.attempt': attempt };
  const span = startSpan({ name: `deliver ${type}`, kind: 'CLIENT', links, attributes }, parent);
  return during(span, send, ({ status, error }) => ({
    'http.response.status_code': status ?? undefined,
    'error.type': /^2..$/.test(String(status)) ? undefined : (error ?? String(status)),
  }));
};
