/** Two projectors share one address where a gateway stands before them; one of them follows the log. */
import { type Client, refusalLine } from './client.ts';
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
  next: (refusal: string) => string = () => '',
): Promise<Response> => {
  for (let tries = 1; ; tries += 1) {
    const answer = await client.post(path, undefined, headers);
    if (answer.ok) return answer;
    const text = await answer.text();
    if (tries === TRIES_MAX || !text.includes('stands by')) {
      throw new CommandFailed(refusalLine(answer.status, text) + next(text));
    }
  }
};
