/** The projector in the response of /health/ready. */
import type { EngineState } from '../shared/http/server/health.ts';
import type { Projector } from './compose.ts';

/** The state of the projection, `stuck` before any other, with the reason of a back-off. */
export const projectionState = (projector: Projector): EngineState => {
  const { state, caughtUp, parked, stuck, error } = projector.status();
  return {
    state: stuck ? 'stuck' : state,
    caughtUp,
    parked,
    ...(error === undefined ? {} : { reason: error }),
  };
};
