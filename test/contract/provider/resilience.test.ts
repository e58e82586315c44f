/** The breaker and the bounded queue before a provider (gaps §7). */
import { afterEach, describe, expect, test } from '@jest/globals';
import { httpProvider } from '../../../command-api/provider/http/provider.ts';
import type { Provider, ProviderOutcome } from '../../../command-api/provider/port.ts';
import { type ResilientProvider, resilient } from '../../../command-api/provider/resilience.ts';
import { type FaultyServer, httpServer, refusedUrl } from '../../support/faulty-server.ts';
import { authorize } from '../../support/provider-operations.ts';
import { until } from '../../support/until.ts';

const NOT_SENT = { outcome: 'NOT_SENT' };
const times = { connectTimeoutMs: 300, timeoutMs: 500 };

const opened: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

const resilientHttp = (
  url: string,
  options: Parameters<typeof resilient>[1] = {},
): ResilientProvider => {
  const provider = resilient(httpProvider({ url, ...times }), options);
  opened.push(() => provider.close());
  return provider;
};
const serve = async (handler: Parameters<typeof httpServer>[0]): Promise<FaultyServer> => {
  const server = await httpServer(handler);
  opened.push(() => server.close());
  return server;
};

/** Everything but `execute` is somebody else's promise here. */
const providerThat = (execute: Provider['execute']): Provider => ({
  execute,
  lookUp: async () => ({ outcome: 'NOT_FOUND' }),
  fence: async () => ({ outcome: 'FENCED' }),
  ledger: async () => ({ entries: [], next: null }),
  close: async () => undefined,
});
const inTurn = (responses: ProviderOutcome[]) => {
  let calls = 0;
  const provider = providerThat(async () => {
    calls += 1;
    return responses[calls - 1] ?? { outcome: 'APPROVED' };
  });
  return { provider, calls: () => calls };
};
const notSent = (times: number): ProviderOutcome[] => Array(times).fill(NOT_SENT);

describe('gaps §7: the breaker', () => {
  test('opens after 5 calls in a row that could not be sent, and for PUT alone', async () => {
    const provider = resilientHttp(await refusedUrl());
    for (let call = 1; call <= 5; call += 1) {
      expect(provider.breakerOpen()).toBe(false);
      expect(await provider.execute(authorize())).toEqual(NOT_SENT);
    }
    expect(provider.breakerOpen()).toBe(true);
    expect(await provider.execute(authorize())).toEqual(NOT_SENT);
    // It still goes out: nobody answers there.
    expect(await provider.lookUp(authorize())).toEqual({
      outcome: 'UNKNOWN',
      reason: 'unreachable',
    });
  });

  test('open, it sends nothing; after 1 s one call tries, and an answer closes it', async () => {
    const { provider, calls } = inTurn(notSent(5));
    const behind = resilient(provider);
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize());
    const began = performance.now();
    expect(await behind.execute(authorize())).toEqual(NOT_SENT);
    expect(calls()).toBe(5);
    await until('the breaker lets a call through', async () => {
      const { outcome } = await behind.execute(authorize());
      return outcome === 'APPROVED';
    });
    expect(performance.now() - began).toBeGreaterThan(900);
    expect([calls(), behind.breakerOpen()]).toEqual([6, false]);
  });

  test('a clock that is set back does not keep it open', async () => {
    const { provider } = inTurn(notSent(5));
    const behind = resilient(provider, { halfOpenAfterMs: 30 });
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize());
    const { now } = Date;
    Date.now = () => now() - 3_600_000;
    try {
      await until('the breaker lets a call through', async () => {
        const { outcome } = await behind.execute(authorize());
        return outcome === 'APPROVED';
      });
    } finally {
      Date.now = now;
    }
    expect(behind.breakerOpen()).toBe(false);
  });

  test('the call that tries and could not be sent opens it for another while', async () => {
    const { provider, calls } = inTurn(notSent(7));
    const behind = resilient(provider, { halfOpenAfterMs: 30 });
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize());
    await until('a call tries', async () => {
      await behind.execute(authorize());
      return calls() === 6;
    });
    expect(behind.breakerOpen()).toBe(true);
    expect(await behind.execute(authorize())).toEqual(NOT_SENT);
    expect(calls()).toBe(6);
  });

  test('while one call tries, the others do not wait for it', async () => {
    const trying = Promise.withResolvers<ProviderOutcome>();
    let calls = 0;
    const provider = providerThat(async () => {
      calls += 1;
      return calls <= 5 ? { outcome: 'NOT_SENT' } : trying.promise;
    });
    const behind = resilient(provider, { halfOpenAfterMs: 30 });
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize());
    let trial: Promise<ProviderOutcome> | undefined;
    await until('a call tries', () => {
      trial = behind.execute(authorize());
      return calls === 6;
    });
    expect(await behind.execute(authorize())).toEqual(NOT_SENT);
    trying.resolve({ outcome: 'UNKNOWN', reason: 'timeout' });
    expect(await trial).toEqual({ outcome: 'UNKNOWN', reason: 'timeout' });
    expect([calls, behind.breakerOpen()]).toEqual([6, false]);
  });

  test('an answer in between starts the count anew, Unknown and declined ones too', async () => {
    const others: ProviderOutcome[] = [
      { outcome: 'UNKNOWN', reason: 'timeout' },
      { outcome: 'DECLINED', failureCode: 'LOST_CARD' },
    ];
    const { provider, calls } = inTurn(others.flatMap((other) => [...notSent(4), other]));
    const behind = resilient(provider);
    for (let call = 0; call < 10; call += 1) await behind.execute(authorize());
    expect([calls(), behind.breakerOpen()]).toEqual([10, false]);
  });
});

describe('gaps §7: the bounded queue', () => {
  test('no place in the queue is NotSent; those in it are sent in order, each once', async () => {
    const pending: Array<() => void> = [];
    const server = await serve((_request, response) => {
      pending.push(() => response.writeHead(500).end());
    });
    const provider = resilientHttp(server.url, { callsMax: 2, queueMax: 2 });
    const operations = Array.from({ length: 5 }, () => authorize());
    const responses = operations.map((operation) => provider.execute(operation));
    expect(await responses[4]).toEqual(NOT_SENT);
    for (let responded = 0; responded < 4; responded += 1) {
      await until('a call arrives', () => pending.length > 0);
      pending.shift()?.();
    }
    const unknown = { outcome: 'UNKNOWN', reason: 'status' };
    expect(await Promise.all(responses.slice(0, 4))).toEqual([unknown, unknown, unknown, unknown]);
    const ids = server.requests.map((request) => request.split('/').at(-1)).sort();
    expect(ids).toEqual(operations.slice(0, 4).map(({ operationId }) => operationId));
  });

  test('a wait too long for a place is NotSent, and the call is never sent later', async () => {
    const slow = Promise.withResolvers<ProviderOutcome>();
    const sent: string[] = [];
    const provider = providerThat((operation) => {
      sent.push(operation.operationId);
      return sent.length === 1 ? slow.promise : Promise.resolve({ outcome: 'APPROVED' });
    });
    const behind = resilient(provider, { callsMax: 1, queueMax: 1, queueWaitMsMax: 30 });
    const [first, second, third] = [authorize(), authorize(), authorize()];
    const running = behind.execute(first);
    expect(await behind.execute(second)).toEqual(NOT_SENT);
    slow.resolve({ outcome: 'APPROVED' });
    expect(await running).toEqual({ outcome: 'APPROVED' });
    expect(await behind.execute(third)).toEqual({ outcome: 'APPROVED' });
    expect(sent).toEqual([first.operationId, third.operationId]);
  });

  test('a provider that breaks its promise and throws may have acted: Unknown', async () => {
    const behind = resilient(providerThat(() => Promise.reject(new Error('broken'))));
    expect(await behind.execute(authorize())).toEqual({ outcome: 'UNKNOWN', reason: 'failed' });
  });
});
