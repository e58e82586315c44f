/** A service whose one payment has a story, and the tokens of auditors who read it. */
import { type Asking, idOf, NO_RETRIES, serviceOfTests, token } from './service-in-process.ts';

/** The headers of a request for lines of JSON. */
export const NDJSON = { accept: 'application/x-ndjson' };

export const openAuditStory = async () => {
  const service = await serviceOfTests(NO_RETRIES);
  const story = idOf(await service.create({ merchantReference: 'order-77' }));
  await service.change('capture', story, { captureAmount: 1500 });
  await service.change('refund', story, { refundAmount: 500 });
  const all = await token('*', 'audit:read');
  return {
    service,
    /** A payment of m_test: authorized 2500, captured 1500, refunded 500. */
    story,
    /** Tokens with audit:read: of all merchants, of m_test and of m_other. */
    all,
    own: await token('m_test', 'audit:read'),
    other: await token('m_other', 'audit:read'),
    /** GET under /audit/v1; by the token of all merchants, unless another or none (null) is given. */
    read: (path: string, bearer: string | null = all, headers: Asking['headers'] = {}) =>
      service.ask('GET', `/audit/v1${path}`, undefined, { token: bearer, headers }),
  };
};

/** An event as the timeline of a payment shows it. */
export type TimelineEvent = {
  type: string;
  revision: number;
  position: string;
  hash: string;
  [field: string]: unknown;
};

/** The events of a timeline's body. */
export const eventsOf = (json: unknown): TimelineEvent[] =>
  (json as { events: TimelineEvent[] }).events;
