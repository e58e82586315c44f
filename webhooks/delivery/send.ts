/**
 * Sends one request to an endpoint; no other file imports the client. The address is checked when the
 * connection is made, so no spelling or later change of a name leads to one that is not public. No redirect is
 * followed. The response body is dropped: showing it would let this service read from inner networks.
 */
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector, request } from 'undici';
import { type AddressKindOf, literalOf } from '../endpoints/addresses.ts';

export type SendOutcome = {
  status: number | null;
  /** A code, without a text of the other side. */
  error: string | null;
  /** Of a response with 429 or 503. */
  retryAfterMs: number | undefined;
};

export type SenderOptions = {
  kindOf: AddressKindOf;
  /** PEM, in place of Node's own; for tests. */
  ca?: string;
  /** A and AAAA. Tests replace it. */
  resolve?: (name: string) => Promise<string[]>;
};

const CONNECT_MS = 3_000;
const RESPONSE_BYTES_MAX = 16_384;

const coded = (code: string): Error => Object.assign(new Error(code), { code });

const resolver = new Resolver({ timeout: 2_000, tries: 2 });
/** By the name servers: `dns.lookup` would take the threads that files are read with. */
const resolveName = async (name: string): Promise<string[]> => {
  const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
};

type Connect = ReturnType<typeof buildConnector>;

const publicConnector = ({ kindOf, ca, resolve = resolveName }: SenderOptions): Connect => {
  /** Plain http reaches only what the operator allows. */
  const mayReach = (address: string, protocol: string): boolean => {
    const kind = kindOf(address);
    return kind === 'allowed' || (kind === 'public' && protocol === 'https:');
  };

  const addressesOf = async (name: string, protocol: string) => {
    const found = await resolve(name);
    if (found.length === 0) throw coded('NAME_UNKNOWN');
    if (!found.every((address) => mayReach(address, protocol))) throw coded('ADDRESS_REFUSED');
    return found.map((address) => ({ address, family: isIP(address) }));
  };

  const lookupFor =
    (protocol: string): LookupFunction =>
    (hostname, { all }, done) => {
      addressesOf(hostname, protocol).then(
        (found) =>
          all ? done(null, found) : done(null, found[0]?.address ?? '', found[0]?.family),
        (error: NodeJS.ErrnoException) => done(error, ''),
      );
    };

  const connectorFor = (protocol: string): Connect => {
    const lookup = lookupFor(protocol);
    return buildConnector({ timeout: CONNECT_MS, allowH2: false, lookup, ...(ca && { ca }) });
  };
  const connectors: Record<string, Connect> = {
    'https:': connectorFor('https:'),
    'http:': connectorFor('http:'),
  };

  return (options, done) => {
    const { protocol, hostname } = options;
    const connect = connectors[protocol];
    const literal = literalOf({ hostname });
    // A literal address is never looked up, so it is checked here.
    if (connect === undefined || (literal !== undefined && !mayReach(literal, protocol)))
      return done(coded('ADDRESS_REFUSED'), null);
    connect(options, (...[error, socket]) => {
      if (error !== null) return done(error, null);
      if (mayReach(socket.remoteAddress ?? '', protocol)) return done(null, socket);
      socket.destroy();
      done(coded('ADDRESS_REFUSED'), null);
    });
  };
};

const retryAfterMsOf = (status: number, value: string | string[] | undefined) => {
  if (status !== 429 && status !== 503) return undefined;
  const text = String(value ?? '');
  const ms = /^[0-9]{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
};

const codeOf = (error: unknown, isLate: boolean): string => {
  if (isLate) return 'TIMEOUT';
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const found = String(code ?? cause?.code ?? 'FAILED');
  return /^[A-Z0-9_]{1,64}$/.test(found) ? found : 'FAILED';
};

/** Connections are kept open per origin, so a process keeps one sender. */
export const createWebhookSender = (options: SenderOptions) => {
  const agent = new Agent({
    connect: publicConnector(options),
    maxResponseSize: RESPONSE_BYTES_MAX,
    pipelining: 1,
    keepAliveTimeout: 10_000,
  });

  return {
    /** Throws only the reason of an aborted `signal`. */
    send: async (
      url: string,
      headers: Record<string, string>,
      body: string,
      { totalMs, signal }: { totalMs: number; signal: AbortSignal },
    ): Promise<SendOutcome> => {
      const late = AbortSignal.timeout(totalMs);
      try {
        const response = await request(url, {
          dispatcher: agent,
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'user-agent': 'payments-webhooks/1',
            ...headers,
          },
          body,
          signal: AbortSignal.any([signal, late]),
        });
        const { statusCode: status } = response;
        // The headers decide. A body that breaks off, or never ends, changes nothing.
        await response.body
          .dump({ limit: RESPONSE_BYTES_MAX, signal: late })
          .catch(() => undefined);
        const retryAfterMs = retryAfterMsOf(status, response.headers['retry-after']);
        return { status, error: null, retryAfterMs };
      } catch (error) {
        signal.throwIfAborted();
        return { status: null, error: codeOf(error, late.aborted), retryAfterMs: undefined };
      }
    },
    close: () => agent.destroy(),
  };
};
export type WebhookSender = ReturnType<typeof createWebhookSender>;
