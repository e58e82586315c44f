/** What stands in front of several processes, as ops/Caddyfile has it. */
import { Agent, request } from 'node:http';
import { httpServer } from './faulty-server.ts';
import { isReady } from './service-client.ts';

export type Kind = 'command-api' | 'query-api' | 'projector' | 'provider';

type Upstream = { url: string; running(): boolean };

/** Which kind of process serves a request; ops/Caddyfile says the same. */
const kindFor = (method: string, path: string): Kind => {
  if (/^\/audit\/v1\/(payments\/[^/?]+\/)?reconcile/.test(path)) return 'command-api';
  if (/^\/ops\/v1\/(unresolved|attention|payments|settings|reconcile|webhook-endpoints)/.test(path))
    return 'command-api';
  if (path.startsWith('/api/v1/webhook-endpoints')) return 'command-api';
  if (path.startsWith('/ops') || path.startsWith('/audit/v1/export')) return 'projector';
  const isRead = method === 'GET' || method === 'HEAD';
  return isRead && !path.startsWith('/health') ? 'query-api' : 'command-api';
};

const READINESS_MS = 250;
/** An idle connection ends before its process would close it, as in ops/Caddyfile. */
const IDLE_MS = 3_000;

/**
 * Round robin over the processes of a kind; an upstream that is gone is a 502 of no shape. `serves` says
 * which it sends requests to: those that run or, where it `asksReadiness`, that were ready a moment ago.
 */
export const startGateway = async (upstreams: Record<Kind, Upstream[]>, asksReadiness: boolean) => {
  let turn = 0;
  const ready = new Set<Upstream>();
  const look = async (one: Upstream): Promise<void> => {
    if (await isReady(one.url)) ready.add(one);
    else ready.delete(one);
  };
  const looking = setInterval(() => {
    if (asksReadiness) for (const one of Object.values(upstreams).flat()) void look(one);
  }, READINESS_MS);
  const serves = (one: Upstream): boolean => (asksReadiness ? ready.has(one) : one.running());
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const server = await httpServer((incoming, outgoing) => {
    const kind = kindFor(incoming.method ?? '', incoming.url ?? '');
    const candidates = upstreams[kind].filter(serves);
    turn += 1;
    const upstream = candidates[turn % candidates.length];
    if (upstream === undefined) {
      outgoing.writeHead(502).end();
      return;
    }
    const { method = 'GET', url = '/', rawHeaders: headers } = incoming;
    const forwarded = request(upstream.url + url, { method, headers, agent }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
      response.pipe(outgoing);
    });
    forwarded.on('error', () =>
      outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end(),
    );
    incoming.pipe(forwarded);
  });
  const close = async (): Promise<void> => {
    clearInterval(looking);
    await server.close();
  };
  return { url: server.url, serves, close };
};
