/**
 * The claims of merchant references (gaps §8): one stream per reference, named by a keyed hash, to
 * which each claimant appends its payment at the exact revision it has read.
 */
import { expectedAfter, timeAfter } from '../shared/event-store/append-after.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../shared/event-store/errors.ts';
import type { EventContext, EventStore, RecordedEvent } from '../shared/event-store/port.ts';
import { type ClaimEvent, referenceStreamOf } from '../shared/payment/claim-events.ts';
import { isClaimEvent } from '../shared/payment/events.ts';
import { newEventId } from '../shared/runtime/ids.ts';
import type { Identities } from './idempotency.ts';

/** All claims of one reference, the oldest first. */
export type Claims = {
  /** The stream that new claims go to, with its events. */
  stream: string;
  events: readonly RecordedEvent[];
  /** Of this stream, and before them of the stream by the older secret. */
  paymentIds: string[];
  /** The event id of the last one: the same payment can be claimed for by its own repeat. */
  lastId: string | undefined;
  /** How long ago the last one was made, by this process's clock. */
  lastAgeMs: number;
};

export type ReferenceClaims = {
  /** Throws StoreUnavailable. */
  read(merchantId: string, reference: string): Promise<Claims>;
  /** Claims for a payment, unless somebody was faster; read again either way. Returns the claim's id. */
  claim(after: Claims, data: ClaimEvent['data'], context: EventContext): Promise<string>;
};

export type ReferenceClaimsOptions = {
  store: Pick<EventStore, 'append' | 'readStream'>;
  identities: Pick<Identities, 'referenceHashOf' | 'previous'>;
  nowMs: () => number;
};

const claimOf = ({ event, stream }: RecordedEvent): ClaimEvent['data'] => {
  if (!isClaimEvent(event)) throw new Error(`${stream} holds ${event.type}, which is no claim`);
  return event.data;
};

export const createReferenceClaims = (options: ReferenceClaimsOptions): ReferenceClaims => {
  const { store, identities, nowMs } = options;
  return {
    read: async (merchantId, reference) => {
      const streamBy = (by: Pick<Identities, 'referenceHashOf'>): string =>
        referenceStreamOf(by.referenceHashOf(merchantId, reference));
      const { previous } = identities;
      const stream = streamBy(identities);
      const older = previous === undefined ? [] : await store.readStream(streamBy(previous));
      const events = await store.readStream(stream);
      const all = [...older, ...events];
      const lastAgeMs = nowMs() - Date.parse(all.at(-1)?.time ?? '');
      const paymentIds = all.map((event) => claimOf(event).paymentId);
      return { stream, events, paymentIds, lastId: all.at(-1)?.id, lastAgeMs };
    },
    claim: async ({ stream, events }, data, context) => {
      const last = events.at(-1);
      const time = timeAfter(last, nowMs());
      const event: ClaimEvent = { type: 'MerchantReferenceClaimed', data };
      const id = newEventId();
      try {
        await store.append(stream, expectedAfter(last), [{ id, time, event, context }]);
      } catch (error) {
        // Reading the stream again shows whose claim is in it.
        const looksAgain =
          error instanceof RevisionConflict || error instanceof AppendOutcomeUnknown;
        if (!looksAgain) throw error;
      }
      return id;
    },
  };
};
