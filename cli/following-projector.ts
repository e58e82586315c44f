/** Two projectors share one address where a gateway stands before them; one of them follows the log. */
import { REJECTION_HEADER } from '../shared/http/errors.ts';
import { type Client, rejectionLine } from './client.ts';
import { CommandFailed } from './command-failed.ts';

const ATTEMPTS_MAX = 8;

/**
 * Posts until the projector that follows the log responds. Throws CommandFailed, one line,
 * at any other rejection; `next` says what to do about one, by its reason, where there is something.
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
    const text = await response.text();
    const reason = response.headers.get(REJECTION_HEADER);
    if (attempts === ATTEMPTS_MAX || reason !== 'STANDING_BY') {
      throw new CommandFailed(rejectionLine(response.status, text) + next(reason));
    }
  }
};
