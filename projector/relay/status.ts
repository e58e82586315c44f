/** The state of a relay, for operators. */
import type { Position } from '../../shared/event-store/port.ts';
import type { SubscriptionState } from '../subscription.ts';

export const RELAY_STATES = [
  /** No broker is set: nothing is sent. */
  'off',
  'starting',
  /** Another process relays. */
  'standing-by',
  'running',
  /** The broker or the store is out of reach, or does not respond; the relay tries again without end. */
  'backing-off',
  /** The relay cannot go on until an operator acts; `error` says why. */
  'halted',
  'stopped',
] as const;
export type RelayState = (typeof RELAY_STATES)[number];

export type RelayStatus = {
  state: RelayState;
  /** Why the relay backs off or has halted. */
  error?: string;
  /** This relay's, or the stored one as last seen until this relay has taken it. */
  checkpoint: Position | null;
  /** Payments parked at an event that cannot be read or sent, by that checkpoint. */
  parked: number;
  /** Events sent and acknowledged, and starts after an error, since the start. */
  counts: { published: number; restarts: number };
};

/** The parts of a relay that its state follows from. */
type Parts = {
  subscription: { state: SubscriptionState; error?: string };
  halted: string | undefined;
  standingBy: boolean;
  isSilent: boolean;
};

/** The state, with the reason of a back-off or a halt. */
export const stateOf = (parts: Parts): Pick<RelayStatus, 'state' | 'error'> => {
  const { state, error } = parts.subscription;
  if (parts.halted !== undefined) return { state: 'halted', error: parts.halted };
  if (state === 'stopped') return { state };
  if (parts.standingBy) return { state: 'standing-by' };
  if (parts.isSilent) return { state: 'backing-off', error: 'the broker does not answer' };
  return error === undefined ? { state } : { state, error };
};
