/** The projector as its operators see it in /health/ready. */
import type { EngineState } from '../shared/http/server/health.ts';
import type { Projector } from './compose.ts';

export const projectionState = (projector: Projector): EngineState => {
  const { state, caughtUp, parked, stuck, error } = projector.status();
  return {
    state: stuck ? 'stuck' : state,
    caughtUp,
    parked,
    ...(error === undefined ? {} : { reason: error }),
  };
};
