/**
 * `POST /audit/v1/reconcile` as a stream, which `payments reconcile` reads: it takes as long as the log
 * and the ledger are long, and no proxy on the way may take it for a service that does not respond.
 */
import { afterEach, expect, test } from '@jest/globals';
import { reconcile } from '../../command-api/back-office/reconcile/reconcile.ts';
import { RECONCILE_ROUTES } from '../../command-api/back-office/reconcile/routes.ts';
import type { LedgerPage } from '../../providers/port.ts';
import { registerRoutes } from '../../shared/http/route.ts';
import { createStreams, KEEP_ALIVE } from '../../shared/http/server/streams.ts';
import { runCli } from '../support/cli.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { openApp, signToken } from '../support/service-in-process.ts';

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const EMPTY: LedgerPage = { entries: [], next: null };
/** A token of all merchants has one beside it. */
const LIMITS = { openMax: 1, ownMax: 1, keepAliveMs: 10, stalledMs: 60_000 };

/** A service whose log is empty, and whose provider's ledger is read by `ledger`. */
const served = async (ledger: () => Promise<LedgerPage>) => {
  const { app, authHooks } = await openApp();
  ends.push(() => app.close());
  const store = memoryEventStore();
  registerRoutes(app, authHooks, RECONCILE_ROUTES, {
    record: async () => undefined,
    reconcile: () => reconcile({ store, provider: { ledger } }),
    streams: createStreams(app, LIMITS),
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const token = await signToken({ merchant_id: '*', sub: 'ann', scope: 'audit:read' });
  return {
    post: () =>
      fetch(`${url}/audit/v1/reconcile`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
      }),
    cli: () => runCli(['reconcile'], { PAYMENTS_URL: url, PAYMENTS_TOKEN: token }),
  };
};

test('M5: while the ledger is being read keep-alives come, then the result', async () => {
  const { promise: read, resolve } = Promise.withResolvers<LedgerPage>();
  const { post } = await served(() => read);
  const response = await post();
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/event-stream',
  ]);
  let text = '';
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    text += Buffer.from(part).toString();
    if (text === KEEP_ALIVE) resolve(EMPTY);
  }
  expect(text.startsWith(KEEP_ALIVE)).toBe(true);
  const [, data = ''] = /event: result\ndata: (.+)\n\n$/.exec(text) ?? [];
  expect(JSON.parse(data)).toMatchObject({ ok: true, operations: 0, entries: 0 });
});

test('A5: no more of them at a time than there are places', async () => {
  const { promise: read, resolve } = Promise.withResolvers<LedgerPage>();
  const { post } = await served(() => read);
  const open = [await post(), await post()];
  expect((await post()).status).toBe(503);
  resolve(EMPTY);
  for (const stream of open) expect(await stream.text()).toContain('event: result');
});

test('payments reconcile shows the result', async () => {
  const { cli } = await served(async () => EMPTY);
  const { code, stdout } = await cli();
  expect([code, stdout]).toEqual([0, 'log and provider agree: 0 operations, 0 ledger entries\n']);
});

test('payments reconcile says of a ledger that cannot be read what the response as JSON says', async () => {
  const { cli } = await served(async () => {
    throw new Error('out of reach');
  });
  const { code, stdout, stderr } = await cli();
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(
    /^payments: PROVIDER_UNAVAILABLE: .*\(the provider's ledger cannot be read now; nothing was changed\)\n$/,
  );
});
