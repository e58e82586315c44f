/** How the deliverer and its endpoints are, for health and metrics. */
import type { EndpointLoop } from './endpoint-loop.ts';

/**
 * `HALTED`: the log is not the one that was sent from, or the endpoint's events cannot be read; an operator
 * has to put the right log back.
 */
export type DeliveryState = 'ENABLED' | 'FAILING' | 'DISABLED' | 'HALTED';

/** What the endpoints come to. */
type Endpoints = {
  /** A merchant whose events of endpoints cannot be read counts as one that is halted. */
  endpoints: Record<DeliveryState, number>;
  /** When the oldest event happened that an enabled endpoint has not accepted; null: none. */
  oldestWaitingMs: number | null;
};

export type DelivererStatus = Endpoints & {
  state: 'standing-by' | 'idle' | 'running' | 'backing-off' | 'stopped';
  error?: string;
};

/** The endpoints by the loops that deliver to them, and by how many are halted. */
export const endpointsStatus = (
  running: readonly { loop: EndpointLoop }[],
  halted: number,
): Endpoints => {
  const endpoints = { ENABLED: 0, FAILING: 0, DISABLED: 0, HALTED: halted };
  const waits: number[] = [];
  for (const { loop } of running) {
    const { isDisabled, isFailing, oldestWaiting } = loop.status();
    endpoints[isDisabled ? 'DISABLED' : isFailing ? 'FAILING' : 'ENABLED'] += 1;
    if (oldestWaiting !== null && !isDisabled) waits.push(oldestWaiting);
  }
  return { endpoints, oldestWaitingMs: waits.length === 0 ? null : Math.min(...waits) };
};
