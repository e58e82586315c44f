/**
 * Stripe's Idempotency-Keys as its documentation has them: the status and body of the first request
 * are kept once execution has begun, failures included, and replayed; another endpoint or other
 * parameters under the same key are 400, a twin that still runs is 409. A failed validation, 401 and
 * 429 keep nothing.
 */
import { errorReply, type Reply } from './books.ts';

export type Keyed = { key: string; endpoint: string; form: string };
type Stored = Keyed & { reply: Reply | undefined };

/** Not kept: the request never began to be executed. */
const isKept = ({ status, body }: Reply): boolean => {
  const { error } = body as { error?: { code?: string; executed?: false } };
  return status !== 401 && status !== 403 && status !== 429 && error?.executed !== false;
};

export const createKeys = () => {
  const stored = new Map<string, Stored>();
  return {
    /** What Stripe says without executing anything; undefined: the key is this request's now. */
    begin: ({ key, endpoint, form }: Keyed): (Reply & { replayed?: true }) | undefined => {
      const first = stored.get(key);
      if (first === undefined) {
        stored.set(key, { key, endpoint, form, reply: undefined });
        return undefined;
      }
      if (first.reply === undefined) {
        return errorReply(409, { type: 'idempotency_error', code: 'idempotency_key_in_use' });
      }
      if (first.endpoint !== endpoint || first.form !== form) {
        return errorReply(400, {
          type: 'idempotency_error',
          message:
            'Keys for idempotent requests can only be used for the same endpoint and parameters',
        });
      }
      return { ...first.reply, replayed: true };
    },
    end: ({ key }: Keyed, reply: Reply): void => {
      const first = stored.get(key);
      if (first === undefined) return;
      if (isKept(reply)) first.reply = structuredClone(reply);
      else stored.delete(key);
    },
    /** Keys may be pruned once they are a day old. */
    prune: (): void => stored.clear(),
  };
};
