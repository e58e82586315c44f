/** The progress of one endpoint. The log is the queue, so a row is small however much waits. Times: Unix ms. */
import { z } from 'zod';
import type { Endpoint } from '../endpoints/endpoints.ts';

const count = z.int().min(0);
const timeMs = z.number();

/** Revisions `from` to `to` of a payment are not accepted yet; `n` attempts at `from` failed. */
const retrying = z.object({ from: count, to: count, n: count, since: timeMs, nextAt: timeMs });
/** Outside of the order of the log; `revision` is of the merchant's stream, or of the payment. */
const single = z.object({
  id: z.string(),
  kind: z.enum(['test', 'notice', 'resend']),
  paymentId: z.string().optional(),
  revision: count,
  n: count,
  since: timeMs,
  nextAt: timeMs,
});

const deliveryRow = z.object({
  /** Up to here all is accepted, not wanted, given up, or of a retrying payment; null: the start of the log. */
  checkpoint: z.string().nullable(),
  /** The log hash there: shows whether the log is still the one that was sent. */
  hash: z.string().nullable(),
  /** A resend reads the log again up to where the endpoint had been, and skips events before a moment. */
  rescan: z.object({ upTo: z.string(), before: timeMs }).nullable(),
  /** The stored name of `followedRevision`. */
  commands: z.int(),
  /** By paymentId. */
  retrying: z.record(z.string(), retrying),
  singles: z.array(single),
  /** In a row. */
  fails: count,
  failingSince: timeMs.nullable(),
  /** While it fails: no request before this time. */
  probeAt: timeMs,
  /** Requests at a time. */
  window: z.int().min(1),
  /** The time of the oldest event that is known to wait. */
  oldestWaiting: timeMs.nullable(),
});
/** `followedRevision`: the last event of the merchant's stream that was followed. */
export type DeliveryRow = Omit<z.infer<typeof deliveryRow>, 'commands'> & {
  followedRevision: number;
};
export type Single = z.infer<typeof single>;

/** After so many failures in a row an endpoint gets one request at a time. */
export const FAILS_MAX = 5;

export const NO_FAILURES = { fails: 0, failingSince: null, probeAt: 0 };

export const newDeliveryRow = (after: string | null, followedRevision: number): DeliveryRow => ({
  checkpoint: after,
  hash: null,
  rescan: null,
  followedRevision,
  retrying: {},
  singles: [],
  ...NO_FAILURES,
  window: 1,
  oldestWaiting: null,
});

export const isFailing = ({ fails }: Pick<DeliveryRow, 'fails'>): boolean => fails >= FAILS_MAX;

/** As its merchant is shown it; `row` is undefined before the first delivery. */
export const rowStatus = (
  { disabled }: Pick<Endpoint, 'disabled'>,
  row: DeliveryRow | undefined,
) => {
  if (disabled !== undefined) return 'DISABLED';
  return row !== undefined && isFailing(row) ? 'FAILING' : 'ENABLED';
};

/** Throws Error for a damaged row: a guess could skip messages. */
export const parseDeliveryRow = (text: string): DeliveryRow => {
  const read = deliveryRow.safeParse(JSON.parse(text));
  if (!read.success)
    throw new Error('the state of a webhook endpoint is damaged; put back its last good copy');
  const { commands: followedRevision, ...row } = read.data;
  return { ...row, followedRevision };
};

export const textOfDeliveryRow = ({ followedRevision: commands, ...row }: DeliveryRow): string =>
  JSON.stringify({ ...row, commands });

const moment = z.string().meta({ format: 'date-time' });

/** One request to an endpoint, or one that could not be made. */
export const attempt = z.object({
  eventId: z.string(),
  type: z.string(),
  paymentId: z.string().nullable(),
  revision: z.int().nullable(),
  /** From 1. */
  attempt: z.int(),
  at: moment,
  status: z.int().nullable().describe('The HTTP status of the response.'),
  /** In one word. */
  error: z.string().nullable().describe('Why there was none.'),
  latencyMs: z.int(),
  nextAt: moment.nullable(),
  outcome: z.enum(['ACCEPTED', 'RETRYING', 'GIVEN_UP']),
});
export type Attempt = z.infer<typeof attempt>;
