/** The breaker and the turns before a provider (gaps §7, §27). */
import { describe, expect, test } from '@jest/globals';
import { httpProvider } from '../../providers/http/provider.ts';
import type { Provider, ProviderOutcome } from '../../providers/port.ts';
import { noteRejections, resilient } from '../../providers/resilience.ts';
import { refusedUrl } from '../support/faulty-server.ts';
import { manualClock } from '../support/manual-clock.ts';
import { authorize } from '../support/provider-operations.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const NOT_SENT = { outcome: 'NOT_SENT' } as const;
const APPROVED = { outcome: 'APPROVED' } as const;
const TIMED_OUT = { outcome: 'UNKNOWN', reason: 'timeout' } as const;

/** Other tests hold everything but `execute` to its promise. */
const behind = (execute: Provider['execute'], callsMax?: number) => {
  const provider: Provider = {
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
    authorizationMsMax: 0,
    close: async () => undefined,
  };
  const clock = manualClock();
  const own = resilient(provider, { ...clock, ...(callsMax && { callsMax }) });
  const call = (operation = authorize()) => own.execute(operation, async () => undefined);
  const callTimes = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n += 1) await call();
  };
  return { own, clock, call, callTimes };
};
const saying = (responses: readonly ProviderOutcome[]) => {
  const sent: string[] = [];
  const opened = behind(async ({ operationId }) => {
    sent.push(operationId);
    return responses[sent.length - 1] ?? APPROVED;
  });
  return { ...opened, sent };
};
const times = (count: number, ...outcomes: ProviderOutcome[]): ProviderOutcome[] =>
  Array.from({ length: count }, (_, n) => outcomes[n % outcomes.length] as ProviderOutcome);

describe('rejections of an account', () => {
  const noting = () => {
    const clock = { nowMs: 0 };
    const rejections: string[] = [];
    const lines: object[] = [];
    const { note, misconfigured } = noteRejections({
      onRejection: (one) => void rejections.push(one),
      logger: { error: (fields) => void lines.push(fields) },
      nowMs: () => clock.nowMs,
    });
    const named = () => misconfigured().map(({ reason, account }) => [reason, account]);
    return { note, named, rejections, lines, clock };
  };

  test('each is counted, and logged once a minute for each account', () => {
    const { note, rejections, lines, clock } = noting();
    const reason = 'forbidden';
    // One merchant's own account does not hide what another one says.
    const accounts = [undefined, undefined, 'acct_1', 'acct_2', 'acct_1'];
    for (const account of accounts)
      note('SALE', { outcome: 'NOT_SENT', reason, ...(account && { account }) });
    clock.nowMs = 60_000;
    note('SALE', { outcome: 'NOT_SENT', reason });
    expect(rejections).toEqual(Array(6).fill(reason));
    const [own, first, second] = [{}, { account: 'acct_1' }, { account: 'acct_2' }];
    const noted = [own, first, second, own].map((one) => ({ operation: 'SALE', reason, ...one }));
    expect(lines).toEqual(noted);
  });

  test('a key or an account that is not set up needs a person until an operation is carried out again', () => {
    const { note, named, clock } = noting();
    note('SALE', { outcome: 'NOT_SENT', reason: 'rate_limited' });
    expect(named()).toEqual([]);
    note('SALE', { outcome: 'NOT_SENT', reason: 'forbidden' });
    note('SALE', { outcome: 'NOT_SENT', reason: 'unauthorized', account: 'acct_1' });
    note('LOOK_UP', { outcome: 'APPROVED' });
    const ofAccount = ['unauthorized', 'acct_1'];
    expect(named()).toEqual([['forbidden', undefined], ofAccount]);
    note('SALE', { outcome: 'DECLINED' });
    expect(named()).toEqual([ofAccount]);
    clock.nowMs = 3_600_000;
    expect(named()).toEqual([]);
  });
});

describe('gaps §7: the breaker', () => {
  test.each<[string, boolean, ProviderOutcome]>([
    ['no connection', true, NOT_SENT],
    ['no connection, by its name', true, { ...NOT_SENT, reason: 'unreachable' }],
    ['a rejected key', false, { ...NOT_SENT, reason: 'unauthorized' }],
    ['a missing permission', false, { ...NOT_SENT, reason: 'forbidden' }],
    ['a rate limit', false, { ...NOT_SENT, reason: 'rate_limited' }],
    ['an account that is not set up', false, { ...NOT_SENT, reason: 'misconfigured' }],
    ['what could not be stored', false, { ...NOT_SENT, reason: 'not_opened' }],
    ['a time that is too short', false, { ...NOT_SENT, reason: 'too_late' }],
    ['a declined card', false, { outcome: 'DECLINED', failureCode: 'CARD_DECLINED' }],
    ['a time-out', false, TIMED_OUT],
  ])('%s, 10 times in a row: open is %p', async (_name, isOpen, outcome) => {
    const { own, callTimes } = saying(times(10, outcome));
    await callTimes(4);
    expect(own.breakerOpen()).toBe(false);
    await callTimes(6);
    expect(own.breakerOpen()).toBe(isOpen);
  });

  test('opens over HTTP for calls that move money alone: a question still goes out', async () => {
    const url = await refusedUrl();
    const own = resilient(httpProvider({ url, connectTimeoutMs: HANGS_MS, timeoutMs: HANGS_MS }));
    for (let n = 0; n < 6; n += 1)
      expect(await own.execute(authorize(), async () => undefined)).toEqual(NOT_SENT);
    expect(own.breakerOpen()).toBe(true);
    const unreachable = { outcome: 'UNKNOWN', reason: 'unreachable' };
    expect(await own.lookUp({ ...authorize(), requestedAt: '' })).toEqual(unreachable);
    await own.close();
  });

  // By the wall clock, which can be set back, no second passes in this test.
  test('open it sends nothing; after 1 s it lets one call through, whose outcome closes it', async () => {
    const { own, clock, call, callTimes, sent } = saying(times(6, NOT_SENT));
    await callTimes(5);
    await clock.advance(999);
    expect([await call(), sent.length]).toEqual([NOT_SENT, 5]);
    await clock.advance(1);
    expect([await call(), sent.length]).toEqual([NOT_SENT, 6]);
    await clock.advance(999);
    expect([await call(), sent.length, own.breakerOpen()]).toEqual([NOT_SENT, 6, true]);
    await clock.advance(1);
    expect([await call(), sent.length, own.breakerOpen()]).toEqual([APPROVED, 7, false]);
  });

  test('calls during the trial call are NotSent at once and do not wait for it', async () => {
    const trying = Promise.withResolvers<ProviderOutcome>();
    let calls = 0;
    const { own, clock, call, callTimes } = behind(async () => {
      calls += 1;
      return calls <= 5 ? NOT_SENT : trying.promise;
    });
    await callTimes(5);
    await clock.advance(1000);
    const trial = call();
    await until('a call tries', () => calls === 6);
    expect(await call()).toEqual(NOT_SENT);
    trying.resolve(TIMED_OUT);
    expect([await trial, calls, own.breakerOpen()]).toEqual([TIMED_OUT, 6, false]);
  });

  test('any call that was sent starts the count anew, Unknown and declined ones too', async () => {
    const declined: ProviderOutcome = { outcome: 'DECLINED', failureCode: 'LOST_CARD' };
    const others = [TIMED_OUT, declined].flatMap((other) => [...times(4, NOT_SENT), other]);
    const { own, callTimes, sent } = saying(others);
    await callTimes(10);
    expect([sent.length, own.breakerOpen()]).toEqual([10, false]);
  });

  const away = times(5, TIMED_OUT, NOT_SENT);
  const rejected: ProviderOutcome = { outcome: 'NOT_SENT', reason: 'unauthorized' };
  test.each<[string, ProviderOutcome[], number, number]>([
    ['an operation is carried out after 5 without a response', [...away, APPROVED], 0, 1],
    ['a question is answered after them, and another one', away, 2, 1],
    ['4 are no outage', [...away.slice(1), APPROVED], 0, 0],
    ['a rejection of the key is no return', [...away, rejected], 0, 0],
    ['two outages', [...away, APPROVED, ...away], 1, 2],
  ])('the provider is back: %s', async (_name, responses, questions, backs) => {
    const { own, clock, call } = saying(responses);
    let heard = 0;
    own.onBack(() => {
      heard += 1;
    });
    for (const _ of responses) {
      await call();
      // The breaker lets each of them through.
      await clock.advance(1000);
    }
    for (let n = 0; n < questions; n += 1) await own.lookUp({ ...authorize(), requestedAt: '' });
    expect(heard).toBe(backs);
  });
});

describe('gaps §7, §27: the turns', () => {
  test('calls without a place are sent in order, each once; one that waits too long never', async () => {
    const sent: { id: string; respond: (outcome: ProviderOutcome) => void }[] = [];
    const { clock, call } = behind(({ operationId: id }) => {
      const { promise, resolve } = Promise.withResolvers<ProviderOutcome>();
      sent.push({ id, respond: resolve });
      return promise;
    }, 1);
    const operations = Array.from({ length: 4 }, () => authorize());
    const responses = operations.map(call);
    for (const n of [1, 2]) {
      await until('a call arrives', () => sent.length === n);
      sent.at(-1)?.respond(APPROVED);
    }
    await until('the third one arrives', () => sent.length === 3);
    await clock.advance(1000);
    expect(await responses[3]).toEqual(NOT_SENT);
    sent.at(-1)?.respond(APPROVED);
    expect(await Promise.all(responses)).toEqual([APPROVED, APPROVED, APPROVED, NOT_SENT]);
    const last = authorize();
    const response = call(last);
    await until('its place is free', () => sent.length === 4);
    sent.at(-1)?.respond(TIMED_OUT);
    expect(await response).toEqual(TIMED_OUT);
    const ids = [...operations.slice(0, 3), last].map(({ operationId }) => operationId);
    expect(sent.map(({ id }) => id)).toEqual(ids);
  });

  test('a provider that breaks its promise and throws may have acted: Unknown', async () => {
    const { call } = behind(() => Promise.reject(new Error('broken')));
    expect(await call()).toEqual({ outcome: 'UNKNOWN', reason: 'failed' });
  });
});
