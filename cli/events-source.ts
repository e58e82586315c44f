/** The events and states of one payment, as `payments events` shows them. */
import type { AuditNoState, AuditTimeline } from '../audit/contract.ts';
import type { State } from '../audit/state.ts';

/** Where the events come from: the service, or an export. */
export type Source = {
  timeline(): Promise<Pick<AuditTimeline, 'events' | 'broken'>>;
  state(at: At): Promise<State | AuditNoState>;
};
/** A moment of a payment; with neither field the present. */
export type At = { revision?: string; at?: string };
