/** A live stream ends with its token (docs/audit.md). */
import type { Principal } from '../shared/http/auth/principal.ts';
import { serverSent } from '../shared/http/server/streams.ts';

/** The last event of a stream whose token has expired. */
export const TOKEN_EXPIRED = 'token-expired';

/** The longest timer that Node has: a token of more than 24 days ends its stream then. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The texts until the token's `exp`, then an event that says so. `end` makes the texts end. */
export async function* untilExpiry(
  { expiresAtSeconds = Number.POSITIVE_INFINITY }: Principal,
  texts: AsyncGenerator<string>,
  end: () => void,
): AsyncGenerator<string> {
  let isOver = false;
  const expire = (): void => {
    isOver = true;
    end();
  };
  const timer = setTimeout(expire, Math.min(expiresAtSeconds * 1000 - Date.now(), TIMER_MS_MAX));
  try {
    yield* texts;
    if (isOver) yield serverSent(TOKEN_EXPIRED, {});
  } finally {
    clearTimeout(timer);
  }
}
