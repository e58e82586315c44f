/** The breaker and the turns before a provider (gaps §7, §27). */
import { afterEach, describe, expect, test } from '@jest/globals';
import { httpProvider } from '../../providers/http/provider.ts';
import type { Provider, ProviderOutcome } from '../../providers/port.ts';
import { noteRejections, type ResilientProvider, resilient } from '../../providers/resilience.ts';
import { type FaultyServer, httpServer, refusedUrl } from '../support/faulty-server.ts';
import { withLog } from '../support/logged-provider.ts';
import { manualClock } from '../support/manual-clock.ts';
import { authorize } from '../support/provider-operations.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const NOT_SENT = { outcome: 'NOT_SENT' };
// No test of this file waits for a time-out.
const times = { connectTimeoutMs: HANGS_MS, timeoutMs: HANGS_MS };

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

/** Other tests hold everything but `execute` to its promise. */
const providerThat = (execute: Provider['execute']): Provider => ({
  execute,
  describeToken: async () => ({ outcome: 'NOT_FOUND' }),
  lookUp: async () => ({ outcome: 'NOT_FOUND' }),
  fence: async () => ({ outcome: 'FENCED' }),
  ledger: async () => ({ entries: [], next: null }),
  ledgerEnd: async () => [],
  disputes: async () => [],
  madeElsewhere: async () => ({ outcome: 'FOUND', made: [] }),
  laterResults: async () => ({ outcome: 'FOUND', results: [] }),
  paymentOf: async () => ({ outcome: 'NOT_FOUND' }),
  onNotice: () => undefined,
  authorizationMsMax: 0,
  close: async () => undefined,
});
const nothingOpened = async (): Promise<void> => undefined;
const inTurn = (responses: ProviderOutcome[]) => {
  let calls = 0;
  const provider = providerThat(async () => {
    calls += 1;
    return responses[calls - 1] ?? { outcome: 'APPROVED' };
  });
  return { provider, calls: () => calls };
};
const notSent = (times: number): ProviderOutcome[] => Array(times).fill(NOT_SENT);

describe('the breaker counts only what says that the provider is away', () => {
  const REASONS = ['unauthorized', 'forbidden', 'rate_limited', 'misconfigured'] as const;

  test.each(REASONS)('%s: never opens it, is counted each time and logged once', async (reason) => {
    const rejections: string[] = [];
    const lines: object[] = [];
    const noted = noteRejections({
      onRejection: (one) => void rejections.push(one),
      logger: { error: (fields) => void lines.push(fields) },
      nowMs: () => 0,
    });
    const { provider } = inTurn(Array(10).fill({ outcome: 'NOT_SENT', reason }));
    const behind = resilient(provider, { onResponse: noted.note });
    for (let call = 0; call < 10; call += 1) await behind.execute(authorize(), nothingOpened);
    expect(behind.breakerOpen()).toBe(false);
    expect(rejections).toEqual(Array(10).fill(reason));
    expect(lines).toEqual([{ operation: 'AUTHORIZE', reason }]);
    // One merchant's own account does not hide what another one says.
    for (const account of ['acct_1', 'acct_2', 'acct_1'])
      noted.note('AUTHORIZE', { outcome: 'NOT_SENT', reason, account });
    expect(lines.slice(1)).toEqual([
      { operation: 'AUTHORIZE', reason, account: 'acct_1' },
      { operation: 'AUTHORIZE', reason, account: 'acct_2' },
    ]);
  });

  test('a key or an account that is not set up needs a person until an operation is carried out again', () => {
    let nowMs = 0;
    const noted = noteRejections({
      onRejection: () => undefined,
      logger: { error: () => undefined },
      nowMs: () => nowMs,
    });
    const named = () => noted.misconfigured().map(({ reason, account }) => [reason, account]);
    noted.note('SALE', { outcome: 'NOT_SENT', reason: 'rate_limited' });
    expect(named()).toEqual([]);
    noted.note('SALE', { outcome: 'NOT_SENT', reason: 'forbidden' });
    noted.note('SALE', { outcome: 'NOT_SENT', reason: 'unauthorized', account: 'acct_1' });
    noted.note('LOOK_UP', { outcome: 'APPROVED' });
    const all = [
      ['forbidden', undefined],
      ['unauthorized', 'acct_1'],
    ];
    expect(named()).toEqual(all);
    noted.note('SALE', { outcome: 'DECLINED' });
    expect(named()).toEqual(all.slice(1));
    nowMs = 3_600_000;
    expect(named()).toEqual([]);
  });

  test.each([
    ['what could not be stored', { outcome: 'NOT_SENT', reason: 'not_opened' }],
    ['a time that is too short', { outcome: 'NOT_SENT', reason: 'too_late' }],
    ['a declined card', { outcome: 'DECLINED', failureCode: 'CARD_DECLINED' }],
  ] as const)('%s never opens it either', async (_name, outcome) => {
    const { provider } = inTurn(Array(10).fill(outcome));
    const behind = resilient(provider);
    for (let call = 0; call < 10; call += 1) await behind.execute(authorize(), nothingOpened);
    expect(behind.breakerOpen()).toBe(false);
  });

  test('no connection opens it, also where the driver says so by name', async () => {
    const { provider } = inTurn(Array(5).fill({ outcome: 'NOT_SENT', reason: 'unreachable' }));
    const behind = resilient(provider);
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize(), nothingOpened);
    expect(behind.breakerOpen()).toBe(true);
  });
});

describe('gaps §7: the breaker', () => {
  test('the breaker opens after 5 calls in a row that could not be sent, and for PUT alone', async () => {
    const provider = resilientHttp(await refusedUrl());
    for (let call = 1; call <= 5; call += 1) {
      expect(provider.breakerOpen()).toBe(false);
      expect(await provider.execute(authorize(), nothingOpened)).toEqual(NOT_SENT);
    }
    expect(provider.breakerOpen()).toBe(true);
    expect(await provider.execute(authorize(), nothingOpened)).toEqual(NOT_SENT);
    // It still goes out: no server answers there.
    expect(await withLog(provider).lookUp(authorize())).toEqual({
      outcome: 'UNKNOWN',
      reason: 'unreachable',
    });
  });

  test('an open breaker sends nothing; after 1 s it lets one call through, whose outcome closes it', async () => {
    const { provider, calls } = inTurn(notSent(5));
    const clock = manualClock();
    const behind = resilient(provider, clock);
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize(), nothingOpened);
    await clock.advance(999);
    expect(await behind.execute(authorize(), nothingOpened)).toEqual(NOT_SENT);
    expect(calls()).toBe(5);
    await clock.advance(1);
    expect(await behind.execute(authorize(), nothingOpened)).toEqual({ outcome: 'APPROVED' });
    expect([calls(), behind.breakerOpen()]).toEqual([6, false]);
  });

  test('the wall clock, which can be set back, does not decide when the breaker lets a call through', async () => {
    const { provider } = inTurn(notSent(5));
    const clock = manualClock();
    // By the wall clock the hour has not passed, and neither has it with a clock that was set back.
    const behind = resilient(provider, { ...clock, halfOpenAfterMs: 3_600_000 });
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize(), nothingOpened);
    await clock.advance(3_600_000);
    expect(await behind.execute(authorize(), nothingOpened)).toEqual({ outcome: 'APPROVED' });
    expect(behind.breakerOpen()).toBe(false);
  });

  test('a trial call that could not be sent opens the breaker for another second', async () => {
    const { provider, calls } = inTurn(notSent(7));
    const clock = manualClock();
    const behind = resilient(provider, clock);
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize(), nothingOpened);
    await clock.advance(1000);
    await behind.execute(authorize(), nothingOpened);
    expect(calls()).toBe(6);
    await clock.advance(999);
    expect(behind.breakerOpen()).toBe(true);
    expect(await behind.execute(authorize(), nothingOpened)).toEqual(NOT_SENT);
    expect(calls()).toBe(6);
  });

  test('calls during the trial call are NotSent at once and do not wait for it', async () => {
    const trying = Promise.withResolvers<ProviderOutcome>();
    let calls = 0;
    const provider = providerThat(async () => {
      calls += 1;
      return calls <= 5 ? { outcome: 'NOT_SENT' } : trying.promise;
    });
    const clock = manualClock();
    const behind = resilient(provider, clock);
    for (let call = 0; call < 5; call += 1) await behind.execute(authorize(), nothingOpened);
    await clock.advance(1000);
    const trial = behind.execute(authorize(), nothingOpened);
    await until('a call tries', () => calls === 6);
    expect(await behind.execute(authorize(), nothingOpened)).toEqual(NOT_SENT);
    trying.resolve({ outcome: 'UNKNOWN', reason: 'timeout' });
    expect(await trial).toEqual({ outcome: 'UNKNOWN', reason: 'timeout' });
    expect([calls, behind.breakerOpen()]).toEqual([6, false]);
  });

  test('any call that was sent starts the count anew, Unknown and declined ones too', async () => {
    const others: ProviderOutcome[] = [
      { outcome: 'UNKNOWN', reason: 'timeout' },
      { outcome: 'DECLINED', failureCode: 'LOST_CARD' },
    ];
    const { provider, calls } = inTurn(others.flatMap((other) => [...notSent(4), other]));
    const behind = resilient(provider);
    for (let call = 0; call < 10; call += 1) await behind.execute(authorize(), nothingOpened);
    expect([calls(), behind.breakerOpen()]).toEqual([10, false]);
  });
});

describe('gaps §7: the provider is back', () => {
  const AWAY: ProviderOutcome[] = [
    { outcome: 'UNKNOWN', reason: 'timeout' },
    { outcome: 'NOT_SENT' },
  ];
  const REJECTED: ProviderOutcome = { outcome: 'NOT_SENT', reason: 'unauthorized' };
  const backAfter = async (responses: ProviderOutcome[], asksAfter = 0) => {
    const clock = manualClock();
    const { provider } = inTurn(responses);
    const behind = resilient(provider, clock);
    let backs = 0;
    behind.onBack(() => {
      backs += 1;
    });
    for (let call = 0; call < responses.length; call += 1) {
      await behind.execute(authorize(), nothingOpened);
      // The breaker lets each of them through.
      await clock.advance(1000);
    }
    for (let sent = 0; sent < asksAfter; sent += 1)
      await behind.lookUp({ ...authorize(), requestedAt: '' });
    return backs;
  };
  const times = (outcomes: ProviderOutcome[], count: number) =>
    Array.from({ length: count }, (_, n) => outcomes[n % outcomes.length] as ProviderOutcome);

  test.each<[string, ProviderOutcome[], number, number]>([
    [
      'an operation is carried out after 5 without a response',
      [...times(AWAY, 5), { outcome: 'APPROVED' }],
      0,
      1,
    ],
    ['a question is answered after them, and another one', times(AWAY, 5), 2, 1],
    ['4 are no outage', [...times(AWAY, 4), { outcome: 'APPROVED' }], 0, 0],
    ['a rejection of the key is no return', [...times(AWAY, 5), REJECTED], 0, 0],
    ['two outages', [...times(AWAY, 5), { outcome: 'APPROVED' }, ...times(AWAY, 5)], 1, 2],
  ])('%s', async (_name, responses, asksAfter, backs) => {
    expect(await backAfter(responses, asksAfter)).toBe(backs);
  });
});

describe('gaps §7, §27: the turns', () => {
  test('calls without a place are sent in order, each once', async () => {
    const pending: Array<() => void> = [];
    const server = await serve((_request, response) => {
      pending.push(() => response.writeHead(500).end());
    });
    const bounds = { callsMax: 1, turnWaitMsMax: HANGS_MS };
    const provider = resilientHttp(server.url, bounds);
    const operations = Array.from({ length: 4 }, () => authorize());
    const responses = operations.map((operation) => provider.execute(operation, nothingOpened));
    for (let call = 0; call < 4; call += 1) {
      await until('a call arrives', () => pending.length > 0);
      pending.shift()?.();
    }
    const unknown = { outcome: 'UNKNOWN', reason: 'status' };
    expect(await Promise.all(responses)).toEqual([unknown, unknown, unknown, unknown]);
    const ids = server.requests.map((request) => request.split('/').at(-1));
    expect(ids).toEqual(operations.map(({ operationId }) => operationId));
  });

  test('a wait too long for a place is NotSent, and the call is never sent later', async () => {
    const slow = Promise.withResolvers<ProviderOutcome>();
    const sent: string[] = [];
    const provider = providerThat((operation) => {
      sent.push(operation.operationId);
      return sent.length === 1 ? slow.promise : Promise.resolve({ outcome: 'APPROVED' });
    });
    const clock = manualClock();
    const behind = resilient(provider, { ...clock, callsMax: 1, turnWaitMsMax: 30 });
    const [first, second, third] = [authorize(), authorize(), authorize()];
    const running = behind.execute(first, nothingOpened);
    const waiting = behind.execute(second, nothingOpened);
    await clock.advance(30);
    expect(await waiting).toEqual(NOT_SENT);
    slow.resolve({ outcome: 'APPROVED' });
    expect(await running).toEqual({ outcome: 'APPROVED' });
    expect(await behind.execute(third, nothingOpened)).toEqual({ outcome: 'APPROVED' });
    expect(sent).toEqual([first.operationId, third.operationId]);
  });

  test('a provider that breaks its promise and throws may have acted: Unknown', async () => {
    const behind = resilient(providerThat(() => Promise.reject(new Error('broken'))));
    expect(await behind.execute(authorize(), nothingOpened)).toEqual({
      outcome: 'UNKNOWN',
      reason: 'failed',
    });
  });
});
