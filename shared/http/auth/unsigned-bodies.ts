/**
 * How many bodies of routes that take a signature may be on their way at once. Who sent such a request
 * is known only once its body is there, so without a limit of their own anybody could take every place
 * of `MAX_IN_FLIGHT` with bodies that never end (ADR-0256).
 */
import { finished } from 'node:stream';
import type { onRequestHookHandler } from 'fastify';
import { RETRY_LATER, reject } from '../errors.ts';

/** Of the places of all requests, one in so many. */
const ONE_IN = 8;

/** Makes the hook of one route; the request above the limit is 503. */
export const limitUnsignedBodies = (maxInFlight: number): onRequestHookHandler => {
  const bodiesMax = Math.ceil(maxInFlight / ONE_IN);
  let arriving = 0;
  return ({ raw }, reply, done) => {
    // seeded bug: unsigned-bodies
    if (arriving >= bodiesMax) {
      reject(reply, 'SERVICE_UNAVAILABLE', ['too many requests at once'], RETRY_LATER);
      return;
    }
    arriving += 1;
    // Also where the client leaves, or the server gives up waiting.
    finished(raw, () => {
      arriving -= 1;
    });
    done();
  };
};
