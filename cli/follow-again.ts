/** A stream that is followed over lost connections and restarts of the service. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from './client.ts';
import { CommandFailed, ServiceUnreachable } from './command-failed.ts';

const BACK_OFF_MS = [500, 1000, 2000, 5000];

/** The id of the last event, and whether the service has let the stream begin once. */
export type Place = { last: string | undefined; connected: boolean };

/** The response to a stream that goes on after the last event. */
export const streamAfter = (client: Client, path: string, { last }: Place): Promise<Response> =>
  client.get(path, {
    accept: 'text/event-stream',
    ...(last !== undefined && { 'last-event-id': last }),
  });

/** The wait that a rejection asks for, in milliseconds; 0 where it asks for none. */
export const retryAfterMs = ({ headers }: Response): number =>
  (Number(headers.get('retry-after')) || 0) * 1000;

/**
 * Calls `follow` whenever its connection has ended. It resolves with the least wait before the next one, in
 * milliseconds; undefined: there is to be none. Throws what `follow` throws for a rejection, and for
 * everything until the stream has begun once.
 */
export const followAgain = async (
  place: Place,
  follow: () => Promise<number | undefined>,
): Promise<void> => {
  for (let attempts = 0; ; attempts += 1) {
    let leastMs = 0;
    try {
      const waitMs = await follow();
      if (waitMs === undefined) return;
      leastMs = waitMs;
      attempts = 0;
    } catch (error) {
      const isRejection = error instanceof CommandFailed && !(error instanceof ServiceUnreachable);
      if (isRejection || !place.connected) throw error;
    }
    const backOffMs = BACK_OFF_MS[Math.min(attempts, BACK_OFF_MS.length - 1)] ?? 0;
    await wait(Math.max(leastMs, backOffMs));
  }
};
