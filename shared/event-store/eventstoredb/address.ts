/** Reads the address of EventStoreDB in the settings, and makes clients from it. */
import { EventStoreDBClient } from '@eventstore/db-client';

// How often the client checks its connection, and how long it then waits for a sign of life.
const KEEP_ALIVE_MS = 10_000;

/** The library's client. */
export type Client = EventStoreDBClient;

/** Who appends. */
export type Credentials = { username: string; password: string };

/**
 * A maker of clients with our keep-alive settings, and the credentials that appends carry. Throws Error with one line that repeats nothing of the address.
 */
export function addressOf(url: string) {
  const match = /^esdb(\+discover)?:\/\/(?:([^:@/?]+):([^@/?]*)@)?[^@/?]+\/?(\?[^\s]*)?$/.exec(url);
  if (match === null) throw new Error('EVENTSTOREDB_URL must be esdb://host:port or similar');
  const [, , user, password, query = ''] = match;
  const isSecure = !/[?&]tls=false(&|$)/i.test(query);
  if (isSecure && user === undefined) {
    throw new Error('EVENTSTOREDB_URL needs user:password@ unless it says tls=false');
  }
  // Without TLS the server ignores them, so any will do.
  const [username, secret] = [user ?? 'insecure', password ?? 'insecure'];
  const credentials: Credentials = {
    username: decodeURIComponent(username),
    password: decodeURIComponent(secret),
  };
  const joint = query === '' ? '?' : '&';
  return {
    isSecure,
    credentials,
    client: (turn: number): Client =>
      EventStoreDBClient.connectionString(
        `${url}${joint}keepAliveInterval=${KEEP_ALIVE_MS + turn}&keepAliveTimeout=${KEEP_ALIVE_MS}`,
      ),
  };
}

/** The first client. Throws Error with one line that repeats nothing of the address. */
export function firstClient(address: ReturnType<typeof addressOf>): Client {
  try {
    return address.client(0);
  } catch (error) {
    // The address holds a password, and the client's message a part of the address.
    const place = /position (\d+), expected (.+)\.$/.exec((error as Error).message);
    const detail = place === null ? '' : `: at character ${place[1]} ${place[2]} is expected`;
    throw new Error(`EVENTSTOREDB_URL cannot be read${detail}`);
  }
}
