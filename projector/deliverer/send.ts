/**
 * One request to an endpoint. The address is checked when the connection is made, so that neither a
 * spelling nor a later change of a name leads to one that is not public; no redirect is followed; the body
 * of the response is dropped, since showing it would make this service a way to read from inner networks.
 * No other file imports the client.
 */
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector, request } from 'undici';
import type { AddressKindOf } from '../../shared/webhooks/addresses.ts';

export type SendOutcome = {
  status: number | null;
  /** A code, without a text of the other side. */
  error: string | null;
  /** Of a response with 429 or 503. */
  retryAfterMs: number | undefined;
};

export type Sender = {
  /** Throws only the reason of an aborted `signal`. */
  send(
    url: string,
    headers: Record<string, string>,
    body: string,
    until: { totalMs: number; signal: AbortSignal },
  ): Promise<SendOutcome>;
  close(): Promise<void>;
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

class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED';
  override name = 'AddressRefused';
}
class NameUnknown extends Error {
  readonly code = 'NAME_UNKNOWN';
  override name = 'NameUnknown';
}

/** By the name servers: `dns.lookup` would take the threads that files are read with. */
const resolveName = (): ((name: string) => Promise<string[]>) => {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  return async (name) => {
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  };
};

type Connect = ReturnType<typeof buildConnector>;

const publicConnector = ({ kindOf, ca, resolve = resolveName() }: SenderOptions): Connect => {
  /** Plain http reaches only what the operator allows. */
  const mayReach = (address: string, protocol: string): boolean => {
    const kind = kindOf(address);
    return kind === 'allowed' || (kind === 'public' && protocol === 'https:');
  };

  const addressesOf = async (name: string, protocol: string): Promise<string[]> => {
    const found = await resolve(name);
    if (found.length === 0) throw new NameUnknown('no address');
    if (!found.every((address) => mayReach(address, protocol))) throw new AddressRefused('refused');
    return found;
  };

  const lookupFor =
    (protocol: string): LookupFunction =>
    (hostname, { all }, done) => {
      addressesOf(hostname, protocol).then(
        (found) => {
          const entries = found.map((address) => ({
            address,
            family: address.includes(':') ? 6 : 4,
          }));
          const [first] = entries;
          if (all) done(null, entries);
          else done(null, first?.address ?? '', first?.family);
        },
        (error: NodeJS.ErrnoException) => done(error, ''),
      );
    };

  const connectorFor = (protocol: string): Connect =>
    buildConnector({
      timeout: CONNECT_MS,
      allowH2: false,
      lookup: lookupFor(protocol),
      ...(ca !== undefined && { ca }),
    });
  const connectors: Record<string, Connect> = {
    'https:': connectorFor('https:'),
    'http:': connectorFor('http:'),
  };

  return (options, done) => {
    const { protocol, hostname } = options;
    const connect = connectors[protocol];
    const bare = hostname.replace(/^\[(.*)\]$/, '$1');
    // A literal address is never looked up, so it is checked here.
    if (connect === undefined || (isIP(bare) !== 0 && !mayReach(bare, protocol))) {
      done(new AddressRefused('refused'), null);
      return;
    }
    connect(options, (...[error, socket]) => {
      if (error !== null) {
        done(error, null);
        return;
      }
      if (mayReach(socket.remoteAddress ?? '', protocol)) {
        done(null, socket);
        return;
      }
      socket.destroy();
      done(new AddressRefused('refused'), null);
    });
  };
};

const SECONDS = /^[0-9]{1,9}$/;

const retryAfterMsOf = (
  status: number,
  value: string | string[] | undefined,
): number | undefined => {
  if (status !== 429 && status !== 503) return undefined;
  const text = String(value ?? '');
  const ms = SECONDS.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
};

const codeOf = (error: unknown, isLate: boolean): string => {
  if (isLate) return 'TIMEOUT';
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const found = String(code ?? cause?.code ?? 'FAILED');
  return /^[A-Z0-9_]{1,64}$/.test(found) ? found : 'FAILED';
};

/** Connections are kept open per origin, so a process keeps one sender. */
export const createSender = (options: SenderOptions): Sender => {
  const agent = new Agent({
    connect: publicConnector(options),
    maxResponseSize: RESPONSE_BYTES_MAX,
    pipelining: 1,
    keepAliveTimeout: 10_000,
  });

  return {
    send: async (url, headers, body, { totalMs, signal }) => {
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
