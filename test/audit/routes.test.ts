/** The audit routes over a real event store: their responses and their errors (docs/audit.md). */
import { describe, expect, test } from '@jest/globals';
import { LINES_START } from '../../audit/export-lines.ts';
import { hasGoodSignature, type Manifest, manifestShape } from '../../audit/manifest.ts';
import { hashOf } from '../../shared/event-store/chain.ts';
import { eventsOf, NDJSON, openAuditStory, type TimelineEvent } from '../support/audit-story.ts';
import {
  expectError,
  expectResponseHeaders,
  idOf,
  leaveUnresolved,
  signToken,
} from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

/** `story` is authorized 2500, captured 1500, refunded 500. */
const { service, read, story, all, own, other } = await openAuditStory();

/** The id of the log, as an export names it. */
const logOf = async (): Promise<string> =>
  String((await read('/events?limit=1', all, NDJSON)).headers['export-log']);

type Head = Partial<Manifest['head']>;

/** Against a manifest without a signature, of an export whose head has this place. */
const verifyAgainst = (head: Head, said: Partial<Manifest>, bearer = all) => {
  const none = '0'.repeat(64);
  const manifest = {
    ...{ format: 'payments-export', version: 1, exportedAt: '', range: {}, completeness: 'log' },
    ...{ guarantee: 'log', count: 1, first: null, chain: none, bytes: 1, sha256: none },
    head: { position: '1', stream: 'payment-other', revision: 0, hash: none, ...head },
    ...said,
  };
  const text = Buffer.from(JSON.stringify(manifest)).toString('base64url');
  return read(`/verify?manifest=${text}`, bearer);
};

const chainMetrics = async (): Promise<string[] | null> =>
  (await service.ask('GET', '/metrics')).text.match(/^payments_chain_\w+ \d+$/gm);

/** Status and amounts of a payment, computed without the service's fold. */
const plainFold = (events: TimelineEvent[]) => {
  const folded = { authorizedAmount: 0, capturedAmount: 0, refundedAmount: 0, status: 'PENDING' };
  for (const { type, data } of events) {
    const { amount } = data as { amount: number };
    if (type === 'PaymentAuthorized')
      Object.assign(folded, { authorizedAmount: amount, status: 'AUTHORIZED' });
    if (type === 'PaymentCaptured')
      Object.assign(folded, { capturedAmount: amount, status: 'CAPTURED' });
    if (type === 'PaymentRefunded') folded.refundedAmount += amount;
    if (type === 'PaymentFailed') folded.status = 'FAILED';
    if (folded.capturedAmount > 0 && folded.refundedAmount === folded.capturedAmount)
      folded.status = 'REFUNDED';
  }
  return folded;
};

describe('docs/audit.md: the timeline of a payment', () => {
  test('holds every event, oldest first, with its position, cause, amounts and hash', async () => {
    const response = await read(`/payments/${story}/events`);
    expect(response.status).toBe(200);
    expectResponseHeaders(response);
    const events = eventsOf(response.json);
    expect(events.map(({ type }) => type)).toEqual([
      'PaymentCreated',
      'PaymentAuthorized',
      'PaymentCaptureRequested',
      'PaymentCaptured',
      'PaymentRefundRequested',
      'PaymentRefunded',
    ]);
    expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4, 5]);
    for (const [n, event] of events.entries()) {
      expect(event).toMatchObject({ paymentId: story, actor: 'tester' });
      expect(event.previousHash).toBe(events[n - 1]?.hash ?? '0'.repeat(64));
      expect([event.requestId, event.correlationId, event.causationId]).not.toContain('');
    }
    expect(events[5]).toMatchObject({
      status: 'CAPTURED',
      amounts: { amount: 500, currency: 'USD', capturedAmount: 1500, refundableAmount: 1000 },
    });
  });

  test('as NDJSON holds a line for each event, with the hash that the timeline shows', async () => {
    const response = await read(`/payments/${story}/events`, all, NDJSON);
    expect(response.headers['content-type']).toBe('application/x-ndjson');
    const lines = response.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ event }) => event.revision)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(lines.map(({ hash }) => hash)).toEqual(
      eventsOf((await read(`/payments/${story}/events`)).json).map(({ hash }) => hash),
    );
  });
});

describe('docs/audit.md: the state of a payment at a moment', () => {
  test('equals a plain fold of the events up to that moment, by revision and by time', async () => {
    const events = eventsOf((await read(`/payments/${story}/events`)).json);
    for (const [revision, event] of events.entries()) {
      const upTo = plainFold(events.slice(0, revision + 1));
      const byRevision = await read(`/payments/${story}/state?revision=${revision}`);
      expect(byRevision.json).toMatchObject({ revision, payment: upTo, now: { revision: 5 } });
      const next = events[revision + 1];
      if (next !== undefined && next.time === event.time) continue;
      const byTime = await read(`/payments/${story}/state?at=${String(event.time)}`);
      expect(byTime.text).toBe(byRevision.text);
    }
  });

  test('is the body of GET for now, without a difference', async () => {
    const scope = 'audit:read audit:personal';
    const opened = await signToken({ merchant_id: '*', sub: 'auditor', scope });
    const path = `/audit/v1/payments/${story}/state`;
    const { json } = await service.ask('GET', path, undefined, { token: opened });
    expect(json.payment).toEqual((await service.get(story)).json);
    expect(json.differences).toEqual([]);
  });

  test('names each field that has changed since', async () => {
    const { json } = await read(`/payments/${story}/state?revision=3`);
    expect(json.event).toMatchObject({ type: 'PaymentCaptured', revision: 3 });
    const differences = json.differences as { path: string }[];
    expect(differences).toContainEqual({ path: 'refundedAmount', was: 0, now: 500 });
    expect(differences.map(({ path }) => path)).not.toContain('capturedAmount');
  });

  test('takes the time in any offset', async () => {
    const { json } = await read(`/payments/${story}/state?revision=1`);
    const { time } = json.event as { time: string };
    const shifted = new Date(Date.parse(time) + 7_200_000).toISOString().replace('Z', '%2B02:00');
    expect((await read(`/payments/${story}/state?at=${shifted}`)).json.revision).toBe(1);
  });

  test('is 404 before the first event, and 400 past the last revision', async () => {
    const early = await read(`/payments/${story}/state?at=2020-01-01T00:00:00Z`);
    expectError(early, 404, 'PAYMENT_NOT_FOUND', ['the payment did not exist yet at that time']);
    const late = await read(`/payments/${story}/state?revision=6`);
    expectError(late, 400, 'INVALID_REQUEST', ['revision must be at most 5']);
  });
});

describe('docs/audit.md: the search', () => {
  test.each(['4242424242424242', 'card 4242 4242-4242 4242', '%EF%BC%94242424242424242'])(
    'rejects a card number, %s, and repeats no more of it than its name',
    async (number) => {
      const response = await read(`/payments?q=${encodeURIComponent(decodeURIComponent(number))}`);
      expectError(response, 400, 'INVALID_REQUEST', [
        'q must not hold a card number: only its last four digits are kept',
      ]);
      expect(response.text).not.toContain('4242');
    },
  );

  test.each([
    ['its id', () => `q=${story}`],
    ['its reference', () => 'q=order-77'],
    ['amount and status', () => 'q=order-77&minAmount=2500&maxAmount=2500&status=CAPTURED'],
    ['time', () => 'q=order-77&from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z'],
  ])('finds a payment by %s', async (_name, query) => {
    await until('the read models hold it', async () => {
      const { json } = await read(`/payments?${query()}`);
      return (json.payments as { paymentId: string }[]).length === 1;
    });
    const { json } = await read(`/payments?${query()}`);
    const found = { paymentId: story, merchantId: 'm_test', last4: '4242', revision: 5 };
    expect(json.payments).toEqual([expect.objectContaining(found)]);
  });

  test('gives pages newest first, which payments made meanwhile do not move', async () => {
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) made.unshift(idOf(await service.create()));
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null && seen.length < 20) {
      const response = await read(`/payments?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
      const { payments, next } = response.json as unknown as {
        payments: { paymentId: string }[];
        next: string | null;
      };
      seen.push(...payments.map(({ paymentId }) => paymentId));
      cursor = next;
      if (seen.length === 2) made.push('later', idOf(await service.create()));
    }
    expect(seen.slice(0, 5)).toEqual(made.slice(0, 5));
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.at(-1)).toBe(story);
  });
});

describe('L3: verification', () => {
  test('of one payment and of the whole log succeeds', async () => {
    const one = await read(`/payments/${story}/verify`);
    expect(one.json).toMatchObject({ ok: true, guarantee: 'stream', events: 6 });
    const log = await read('/verify');
    expect(log.json).toMatchObject({ ok: true, guarantee: 'log' });
    expect(log.json.head).toMatchObject({ position: String(log.json.events) });
  });

  test('sends its progress as server-sent events, and ends with the result', async () => {
    const { text, headers } = await read('/verify', all, { accept: 'text/event-stream' });
    expect(headers['content-type']).toBe('text/event-stream');
    const names = [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name);
    expect([names[0], names.at(-1)]).toEqual(['progress', 'result']);
    expect(JSON.parse(text.trimEnd().split('data: ').at(-1) ?? '')).toMatchObject({ ok: true });
  });

  const headNow = async () => (await read('/verify')).json.head as NonNullable<Manifest['head']>;

  test('compares a kept head: still there, changed, or cut off', async () => {
    const head = await headNow();
    const log = await logOf();
    const kept = await verifyAgainst(head, { log });
    expect(kept.json).toMatchObject({ ok: true, keptHead: { found: true, signature: 'NONE' } });
    const other = 'a'.repeat(64);
    for (const change of [{ hash: other }, { logHash: other }, { stream: 's' }, { revision: 99 }]) {
      const changed = await verifyAgainst({ ...head, ...change }, { log });
      const { position } = head;
      expect(changed.json).toMatchObject({ finding: 'BROKEN', broken: { position } });
    }
    const cut = await verifyAgainst({ ...head, position: '99999' }, { log });
    expect(cut.json).toMatchObject({ ok: false, broken: { position: '99999' } });
  });

  test('finds a kept head whose position is padded with zeros, as the pages show it', async () => {
    const head = await headNow();
    const padded = { ...head, position: head.position.padStart(12, '0') };
    const { json } = await verifyAgainst(padded, { log: await logOf() });
    expect(json).toMatchObject({ ok: true, keptHead: { position: head.position, found: true } });
  });

  test('a kept head at no position of the log is 400, and no break for the alert', async () => {
    const before = await chainMetrics();
    for (const position of ['start', 'here', '0', '1/1', '99999999999999999999']) {
      expectError(
        await verifyAgainst({ position }, { log: await logOf() }),
        400,
        'INVALID_REQUEST',
        ['position must be a position of the log'],
      );
    }
    expect(await chainMetrics()).toEqual(before);
  });

  test('a head of another log is not comparable, and no break for the alert', async () => {
    const before = await chainMetrics();
    const log = crypto.randomUUID();
    for (const [position, said] of [
      ['1', { log }],
      ['1/1', { log }],
      ['1', {}],
    ] as const) {
      const { json } = await verifyAgainst({ position }, said);
      expect(json).toMatchObject({
        ok: false,
        finding: 'NOT_COMPARABLE',
        keptHead: { found: false, notComparable: expect.stringContaining('log') },
      });
      expect(json.broken).toBeUndefined();
    }
    const breaks = (lines: string[] | null) => lines?.filter((line) => line.includes('breaks'));
    expect(breaks(await chainMetrics())).toEqual(breaks(before));
  });

  test("a merchant's events are not compared with a head of all merchants' events", async () => {
    const log = await logOf();
    const foreign = await verifyAgainst({}, { log }, other);
    expect(foreign.json).toMatchObject({
      finding: 'NOT_COMPARABLE',
      keptHead: { notComparable: expect.stringContaining('all merchants') },
    });
    expect(foreign.json.broken).toBeUndefined();
    const cut = await verifyAgainst({ position: '99999' }, { log, merchantId: 'm_other' }, other);
    expect(cut.json).toMatchObject({ finding: 'BROKEN' });
  });

  test('by a merchant changes no metric of the whole log, whether it succeeds or fails', async () => {
    const before = await chainMetrics();
    expect((await verifyAgainst({}, {}, other)).json.ok).toBe(false);
    expect((await read('/verify', own)).json.ok).toBe(true);
    expect(await chainMetrics()).toEqual(before);
  });

  test('sets its time in the metrics', async () => {
    await read('/verify');
    const { text } = await service.ask('GET', '/metrics');
    expect(text).toMatch(/^payments_chain_last_ok_timestamp_seconds [1-9]\d+$/m);
    expect(text).toMatch(/^payments_chain_breaks_total \d+$/m);
  });
});

describe('docs/audit.md: the event log', () => {
  test('is read page by page, each event once, in the order of positions', async () => {
    const seen: TimelineEvent[] = [];
    let from = 'start';
    for (let pages = 0; pages < 50; pages += 1) {
      const { json } = await read(`/events?from=${from}&limit=7`);
      seen.push(...eventsOf(json));
      from = String(json.next);
      if (json.atEnd === true) break;
    }
    const positions = seen.map(({ position }) => Number(position));
    expect(positions).toEqual(positions.map((_, n) => n + 1));
    expect(seen.filter(({ paymentId }) => paymentId === story)).toHaveLength(6);
  });

  test('is exported for a time span, with the events of that span alone', async () => {
    const { json } = await read(`/payments/${story}/state?revision=3`);
    const { time } = json.event as { time: string };
    const later = new Date(Date.parse(time) + 1).toISOString();
    const { text, headers } = await read(`/events?fromTime=${time}&toTime=${later}`, all, NDJSON);
    expect(headers['export-completeness']).toBe('range');
    expect(text).toContain('"PaymentCaptured"');
    for (const line of text.trimEnd().split('\n')) expect(JSON.parse(line).event.time).toBe(time);
  });

  test.each<[what: string, plain: () => string, own: () => string]>([
    ['from its start', () => '/events?limit=9', () => '/export?limit=9'],
    ['after a position', () => '/events?from=3&limit=9', () => '/export?from=3&limit=9'],
    [
      'before a time',
      () => '/events?toTime=2020-01-01T00:00:00Z',
      () => '/export?toTime=2020-01-01T00:00:00Z',
    ],
    ['of a payment', () => `/payments/${story}/events`, () => `/export?payment=${story}`],
  ])(
    'gaps §25: an export %s has the lines of the events route, then its signed manifest',
    async (_what, plain, own) => {
      const lines = await read(plain(), all, NDJSON);
      const exported = await read(own(), all);
      const named = [
        'content-type',
        'export-completeness',
        'export-guarantee',
        'export-log',
        'export-merchant',
      ];
      const headersOf = ({ headers }: typeof lines) => named.map((name) => headers[name]);
      expect(headersOf(exported)).toEqual(headersOf(lines));
      expect(exported.text.startsWith(lines.text)).toBe(true);
      const last = exported.text.slice(lines.text.length);
      expect(last).toMatch(/^\{"manifest":\{.*\}\}\n$/);
      const manifest = manifestShape.parse(JSON.parse(last).manifest);
      const texts = lines.text
        .split('\n')
        .slice(0, -1)
        .map((text) => JSON.parse(text));
      const [first, end] = [texts[0], texts.at(-1)];
      expect(manifest).toMatchObject({
        log: lines.headers['export-log'],
        count: texts.length,
        bytes: Buffer.byteLength(lines.text),
        sha256: hashOf(lines.text),
        chain: end?.chain ?? LINES_START,
        first: first ? { position: first.position } : null,
        head: end ? { position: end.position, hash: end.hash, logHash: end.logHash } : null,
      });
      expect(hasGoodSignature(manifest, undefined)).toBe(true);
    },
  );

  test.each([
    [`/export?payment=a.b`, 'payment must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -'],
    ['/export?payment=pay_1&limit=3', 'payment is whole: no range can be given beside it'],
    ['/export?from=nowhere', 'from must be start or a position of the log'],
  ])('%s is 400, and records nothing', async (path, detail) => {
    const before = (await read('/events?limit=1000')).json.next;
    expectError(await read(path, all), 400, 'INVALID_REQUEST', [detail]);
    const since = eventsOf((await read(`/events?from=${before}`)).json);
    expect(since.map(({ data }) => (data as { action?: string }).action)).toEqual(['LOG']);
  });

  test('every reading is in the log: who, what and when, and no long number (gaps §4)', async () => {
    await read('/payments?q=4242424242424241&limit=3');
    await read(`/export?payment=${story}`);
    await read('/export?from=3&limit=1');
    const { json } = await read('/events?limit=1000');
    const readings = eventsOf(json).filter(({ type }) => type === 'AuditAccessed');
    expect(readings.at(-2)).toMatchObject({ actor: 'tester' });
    expect(readings.slice(-4, -1).map(({ data }) => data)).toEqual([
      { action: 'SEARCH', merchantId: '*', parameters: 'q=...4241&limit=3' },
      { action: 'EXPORT', merchantId: '*', paymentId: story, parameters: `payment=${story}` },
      { action: 'EXPORT', merchantId: '*', parameters: 'from=3&limit=1' },
    ]);
    expect(readings.map(({ data }) => (data as { action: string }).action)).toEqual(
      expect.arrayContaining(['EVENTS', 'EXPORT', 'STATE', 'VERIFY', 'VERIFY_LOG', 'LOG']),
    );
  });
});

const at = (route: string): string => route.replace('ID', story);
const STATE = '/payments/ID/state';
const DATE_TIME = 'at must be a date-time, as in 2026-01-31T08:00:00Z';
const NO_REVISION = 'revision must be a whole number from 0 to 9007199254740991';

describe('docs/audit.md: malformed parameters', () => {
  test.each<[string, string]>([
    ['/payments?limit=201', 'limit must be a whole number from 1 to 200'],
    ['/payments?limit=1&limit=2', 'limit must be given once'],
    [
      '/payments?status=paid',
      'status must be one of PENDING, AUTHORIZED, CAPTURED, REFUNDED, VOIDED, FAILED',
    ],
    ['/payments?from=yesterday', 'from must be a date-time, as in 2026-01-31T08:00:00Z'],
    [`${STATE}?at=9999-12-31T23:59:59-01:00`, DATE_TIME],
    ['/events/stream?from=here', 'from must be start, now or a position of the log'],
    ['/payments?cursor=nonsense', 'cursor must be the next of an earlier page'],
    ['/payments?statsu=CAPTURED', 'a parameter of another name is not known here'],
    [`${STATE}?revision=1&at=2026-01-01T00:00:00Z`, 'at must not be given beside revision'],
    [`${STATE}?revision=one`, NO_REVISION],
    ['/payments/ID/explain?command=pay', 'command must be one of capture, void, refund'],
    [
      '/payments/ID/explain?command=void&amount=1',
      'amount is not for void, which releases the whole authorization',
    ],
    ['/events?from=here', 'from must be start or a position of the log'],
    ['/verify?manifest=e30', 'manifest must be a manifest in base64url'],
  ])('400: %s', async (route, detail) => {
    expectError(await read(at(route)), 400, 'INVALID_REQUEST', [detail]);
  });

  test('400: a Last-Event-ID that is no position of the log is named, not from', async () => {
    for (const lastId of ['99999', 'a b']) {
      const response = await read('/events/stream', all, { 'last-event-id': lastId });
      expectError(response, 400, 'INVALID_REQUEST', [
        'Last-Event-ID must be a position of the log',
      ]);
    }
  });
});

describe('M5: reconciliation', () => {
  const ofPayment = (paymentId: string, bearer: string | null = all, query = '') =>
    service.ask('GET', `/audit/v1/payments/${paymentId}/reconcile${query}`, undefined, {
      token: bearer,
    });

  test('of one payment has the provider’s word beside each operation, and changes nothing', async () => {
    const paymentId = idOf(await service.create());
    await service.change('capture', paymentId, { captureAmount: 1500 });
    await leaveUnresolved(service, 'answer lost', () => service.change('refund', paymentId));
    const { json } = await ofPayment(paymentId, own);
    expect(json).toMatchObject({ paymentId, merchantId: 'm_test', ok: false, notCompared: 0 });
    const [create, capture, refund] = json.operations as Record<string, unknown>[];
    expect(create).toMatchObject({ kind: 'AUTHORIZE', log: 'APPROVED', finding: 'AGREES' });
    expect(capture).toMatchObject({ kind: 'CAPTURE', amount: 1500, finding: 'AGREES' });
    const open = { finding: 'DIFFERS', difference: 'UNRESOLVED_IN_LOG' };
    expect(refund).toMatchObject({ ...open, provider: { outcome: 'APPROVED' } });
    expect(refund).not.toHaveProperty('log');
    const again = await ofPayment(paymentId, own, '?limit=1');
    expect(again.json.operations).toEqual([refund]);
    expect(again.json.notCompared).toBe(2);
  });

  test('of one payment: a provider that does not respond is never taken for one without an entry', async () => {
    const paymentId = idOf(await service.create());
    service.faults.respondsToLookUps = false;
    const { json } = await ofPayment(paymentId);
    service.faults.respondsToLookUps = true;
    expect(json.ok).toBe(false);
    expect(json.operations).toMatchObject([
      { finding: 'NOT_KNOWN', provider: { outcome: 'UNKNOWN', reason: 'timeout' } },
    ]);
  });

  test('of one payment takes a limit', async () => {
    const paymentId = idOf(await service.create());
    const details = ['limit must be a whole number from 1 to 100'];
    expectError(await ofPayment(paymentId, all, '?limit=101'), 400, 'INVALID_REQUEST', details);
  });
});

describe('docs/audit.md: the event log in pages', () => {
  test('ends a page at 256 KiB, and the next one goes on behind its last event', async () => {
    const item = {
      id: '1',
      name: 'x'.repeat(200),
      goodsType: 'PHYSICAL',
      quantity: 1,
      unitPrice: 1,
    };
    const productItems = Array.from({ length: 190 }, () => item);
    for (let n = 0; n < 12; n += 1) await service.create({ productItems });
    const positions: number[] = [];
    let pages = 0;
    for (let from = 'start'; from !== ''; pages += 1) {
      const { json, text } = await read(`/events?from=${from}&limit=1000`);
      // The event that fills a page is on it.
      expect(text.length).toBeLessThan(262_144 + 100_000);
      positions.push(...eventsOf(json).map(({ position }) => Number(position)));
      from = json.atEnd === true ? '' : String(json.next);
    }
    expect(positions).toEqual(positions.map((_, n) => n + 1));
    expect(pages).toBeGreaterThan(1);
  });
});
