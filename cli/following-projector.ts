/** Two projectors share one address where a gateway stands before them; one of them follows the log. */
import { type Client, rejectionLine } from './client.ts';
import { CommandFailed } from './command-failed.ts';

const TRIES_MAX = 8;

/**
 * Posts until the answer is of the projector that follows the log. Throws CommandFailed, one line,
 * at any other refusal; `next` says what to do about one, where there is something.
 */
export const postToFollowing = async (
  client: Client,
  path: string,
  headers: Record<string, string> = {},
  next: (rejection: string) => string = () => '',
): Promise<Response> => {
  for (let attempts = 1; ; attempts += 1) {
    const response = await client.post(path, undefined, headers);
    if (response.ok) return response;
    const text = await response.text();
    if (attempts === TRIES_MAX || !text.includes('stands by')) {
      throw new CommandFailed(rejectionLine(response.status, text) + next(text));
    }
  }
};
