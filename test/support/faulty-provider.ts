/**
 * A provider that goes wrong: a proxy before the real simulator, whose ledger is durable. Each
 * operation id meets the fault that was planned for it on its PUT; questions are answered, unless
 * the fault is about them.
 */
import type { ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { httpServer } from './faulty-server.ts';
import { providerHere } from './provider-here.ts';

/** What goes wrong with a PUT, in the words of faults.md; "acting" is the money moving. */
export const FAULTS = [
  'reset before acting',
  'reset after acting',
  'time-out before acting',
  'time-out after acting',
  '500 before acting',
  '500 after acting',
  '429',
  'slow drip',
  'cut JSON',
  'HTML',
  'an answer for another operation',
  'an answer for another amount',
  'a redirect',
  'sent twice',
  'acts late',
  'its not found is late',
  'still at work',
] as const;
export type ProviderFault = (typeof FAULTS)[number];

export type FaultyProvider = Awaited<ReturnType<typeof faultyProvider>>;

/** Longer than the service waits for an answer in these tests. */
const LATE_MS = 600;
const DRIP_MS = 100;

type Reply = { status: number; body: string };
type Call = { method: string; path: string; body: Buffer; headers: Record<string, string> };

const later = (work: () => unknown): void => void setTimeout(work, LATE_MS).unref();

/** Sends 200 and then a byte now and then, for ever. */
const drip = (outgoing: ServerResponse): void => {
  outgoing.writeHead(200, { 'content-type': 'application/json' });
  const timer = setInterval(() => outgoing.write(' '), DRIP_MS);
  outgoing.on('close', () => clearInterval(timer));
};

const send = (outgoing: ServerResponse, { status, body }: Reply): void => {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(body);
};

const changed = ({ status, body }: Reply, change: object): Reply => ({
  status,
  body: JSON.stringify({ ...(JSON.parse(body) as object), ...change }),
});

/** Starts it on a free port over a ledger file. */
export const faultyProvider = async (ledgerFile: string) => {
  const upstream = await providerHere(ledgerFile);
  const planned = new Map<string, ProviderFault>();
  /** Operations about which questions go wrong, and how often still. */
  const doubtful = new Map<string, { fault: ProviderFault; times: number }>();

  const forward = async ({ method, path, body, headers }: Call): Promise<Reply> => {
    const response = await fetch(`${upstream.url}${path}`, {
      method,
      headers,
      ...(method === 'PUT' && { body: new Uint8Array(body) }),
    });
    return { status: response.status, body: await response.text() };
  };

  const goWrong = async (fault: ProviderFault, call: Call, outgoing: ServerResponse) => {
    switch (fault) {
      case 'reset before acting':
        return outgoing.destroy();
      case 'reset after acting':
        await forward(call);
        return outgoing.destroy();
      case 'time-out before acting':
        return later(() => outgoing.destroy());
      case 'time-out after acting':
        await forward(call);
        return later(() => outgoing.destroy());
      case '500 before acting':
        return send(outgoing, { status: 500, body: '{"error":"oops"}' });
      case '500 after acting':
        await forward(call);
        return send(outgoing, { status: 500, body: '{"error":"oops"}' });
      case '429':
        return send(outgoing, { status: 429, body: '{}' });
      case 'slow drip':
        await forward(call);
        return drip(outgoing);
      case 'cut JSON': {
        const { status, body } = await forward(call);
        return send(outgoing, { status, body: body.slice(0, -10) });
      }
      case 'HTML':
        await forward(call);
        return send(outgoing, { status: 200, body: '<html>approved</html>' });
      case 'an answer for another operation':
        return send(outgoing, changed(await forward(call), { operationId: 'op_other' }));
      case 'an answer for another amount':
        return send(outgoing, changed(await forward(call), { amount: 1 }));
      case 'a redirect':
        return outgoing.writeHead(307, { location: `${upstream.url}${call.path}` }).end();
      case 'sent twice':
        await forward(call);
        return send(outgoing, await forward(call));
      case 'acts late':
        return later(() => forward(call).catch(() => undefined));
      case 'its not found is late':
      case 'still at work':
        doubtful.set(call.path, { fault, times: 2 });
        await forward(call);
        return outgoing.destroy();
    }
  };

  /** A question that goes wrong: a 404 that is not true yet, or "still at work". */
  const doubtfulResponse = ({ method, path }: Call): Reply | undefined => {
    const doubt = doubtful.get(path);
    if (doubt === undefined || doubt.times === 0) return undefined;
    if (doubt.fault === 'its not found is late') {
      if (method !== 'GET') return undefined;
      doubt.times -= 1;
      return { status: 404, body: '{}' };
    }
    doubt.times -= 1;
    return { status: 202, body: '{}' };
  };

  const server = await httpServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    const { method = '', url: path = '' } = incoming;
    const call = { method, path, body, headers: { 'content-type': 'application/json' } };
    if (method === 'PUT') {
      const { kind, paymentId, amount } = JSON.parse(body.toString());
      const about = [`${kind} ${paymentId}`, `${kind} ${amount}`].find((name) => planned.has(name));
      const fault = planned.get(about ?? '');
      planned.delete(about ?? '');
      if (fault !== undefined) return void (await goWrong(fault, call, outgoing));
    }
    return send(outgoing, doubtfulResponse(call) ?? (await forward(call)));
  });

  return {
    url: server.url,
    /** The next PUT of this kind about this payment, or of a payment with this amount, goes wrong. */
    plan: (about: string, fault: ProviderFault) => void planned.set(about, fault),
    simulation: upstream.simulation,
    close: async () => {
      await server.close();
      await upstream[Symbol.asyncDispose]();
    },
  };
};
