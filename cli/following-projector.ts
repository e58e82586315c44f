/**
 * Behind a gateway two projectors share one address. One of them follows the log, and only that one
 * accepts commands of operators.
 */
import { REJECTION_HEADER } from '../shared/http/errors.ts';
import { type Client, rejectionLine, textOf } from './client.ts';
import { CommandFailed } from './command-failed.ts';

const ATTEMPTS_MAX = 8;

/**
 * Posts again until the projector that follows the log responds. Throws CommandFailed, one line, at
 * any other rejection; `next` returns what to add to that line, by the reason of the rejection.
 */
export const postToFollowing = async (
  client: Client,
  path: string,
  headers: Record<string, string> = {},
  next: (reason: string | null) => string = () => '',
): Promise<Response> => {
  for (let attempts = 1; ; attempts += 1) {
    const response = await client.post(path, undefined, headers);
    if (response.ok) return response;
    const text = await textOf(response);
    const reason = response.headers.get(REJECTION_HEADER);
    if (attempts === ATTEMPTS_MAX || reason !== 'STANDING_BY') {
      throw new CommandFailed(rejectionLine(response.status, text) + next(reason));
    }
  }
};
