/**
 * gaps §29: what others do, at a server that is shared, to the streams by which the service works
 * beside its payments. It goes on serving, or says in one line why not and how to go on.
 */
import { describe, expect, test } from '@jest/globals';
import { withCheckedSecret } from '../../command-api/idempotency-secret.ts';
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import { createIdentities } from '../../shared/http/idempotency.ts';
import { openWebhookSecret } from '../../webhooks/signer.ts';
import { startStandIn } from '../support/eventstoredb-stand-in.ts';
import { shareOf } from '../support/long-run-share.ts';
import { openServerService, type ServerService } from '../support/server-service.ts';
import { SECRET } from '../support/service-in-process.ts';
import { silent as silentLog } from '../support/silent-log.ts';
import { until } from '../support/until.ts';

const HASHES = JSON.stringify({ hash: '7'.repeat(64), previousHash: '8'.repeat(64) });

/** Without a hash first: each other one is passed over for its own reason. */
const OF_OTHERS: [name: string, event: Parameters<ServerService['standIn']['append']>[1]][] = [
  ['an event without a hash', { type: 'Other', data: '{"amount":1}' }],
  ['one whose text does not have its hash', { type: 'Other', data: '{}', metadata: HASHES }],
  ['one of a type of the server', { type: '$x', data: '{}' }],
  ['a link', { type: '$>', data: '0@payment-x', contentType: 'application/octet-stream' }],
  ['bytes', { type: 'Other', data: '\u0000\u0001', contentType: 'application/octet-stream' }],
];

const NAMED = [
  'log-seals',
  'audit-idempotency-secret',
  'audit-provider-ahead',
  'audit-attention',
  'webhooks-merchants',
  'meta-log-id',
  'meta-idempotency-check',
  'meta-webhook-check',
];
const isControl = (stream: string): boolean => /^(audit|webhooks|log|meta)-/.test(stream);

const addEndpoint = async ({ service }: ServerService, path: string): Promise<number> => {
  const body = { url: `https://shop.example/${path}` };
  return (await service.ask('POST', '/api/v1/webhook-endpoints', body)).status;
};

const sealOf = async ({ ask }: ServerService): Promise<string> =>
  JSON.stringify(JSON.parse((await ask('GET', '/ops/v1/log')).text).seal);

/** A payment is charged, an endpoint added, a break acknowledged, and the log sealed. */
const expectServing = async (at: ServerService, round: string): Promise<void> => {
  const before = await sealOf(at);
  expect((await at.service.create({ captureNow: true })).status).toBe(200);
  expect(await addEndpoint(at, round)).toBe(201);
  expect((await at.ask('GET', '/ops/v1/attention')).status).toBe(200);
  expect((await at.ask('POST', '/ops/v1/reconcile/acknowledge')).status).toBe(200);
  await until('it is sealed again', async () => (await sealOf(at)) !== before);
};

const brokenStreams = async ({ ask }: ServerService): Promise<string[]> => {
  const json = JSON.parse((await ask('GET', '/audit/v1/verify')).text);
  return json.breaks.named.map(({ stream }: { stream: string }) => stream).sort();
};

describe('events of others in every stream of control', () => {
  test.each(shareOf(OF_OTHERS, 1))('%s is passed over, and named', async (_, event) => {
    await using at = await openServerService({ SEAL_EVENTS_MAX: '1' });
    await expectServing(at, 'before');
    const streams = new Set([...NAMED, ...at.standIn.streams()].filter(isControl));
    for (const stream of streams) at.standIn.append(stream, event);
    await expectServing(at, 'while-it-runs');
    await at.service.restart();
    await expectServing(at, 'after-a-start');
    // Each once, and nothing of ours that stands behind it.
    const listed = [...streams].filter((stream) => !stream.startsWith('meta-'));
    expect(await brokenStreams(at)).toEqual(listed.sort());
  });
});

type Removal = { stream: string; what: 'softDelete' | 'tombstone' | 'cut' };

const remove = ({ standIn }: Pick<ServerService, 'standIn'>, { stream, what }: Removal): void => {
  if (what === 'cut') standIn.truncate(stream, standIn.dataOf(stream).length);
  else standIn[what](stream);
};

const REMOVALS: Removal[] = (['softDelete', 'tombstone', 'cut'] as const).flatMap((what) =>
  ['webhooks-merchants', 'audit-provider-ahead', 'audit-attention', 'meta-log-id'].map(
    (stream) => ({ stream, what }),
  ),
);
const WAY_OUT = /put it back as docs\/eventstoredb\.md says, "Streams of control"/;

describe('a stream of control that was removed', () => {
  test.each(shareOf(REMOVALS, 1))(
    '$stream, $what: money is served, and it is told',
    async (row) => {
      await using at = await openServerService();
      expect(await addEndpoint(at, 'before')).toBe(201);
      if (![...at.standIn.streams()].includes(row.stream))
        at.standIn.append(row.stream, { type: 'Other', data: '{}' });
      remove(at, row);
      for (const again of [async () => undefined, () => at.service.restart()]) {
        await again();
        expect((await at.service.create({ captureNow: true })).status).toBe(200);
        const { status, text } = await at.ask('GET', '/ops/v1/attention');
        expect(status).toBe(200);
        const listed = JSON.parse(text).items.filter(({ what }: { what: string }) =>
          WAY_OUT.test(what),
        );
        expect(listed.map(({ what }: { what: string }) => what)).toEqual([
          expect.stringContaining(row.stream),
        ]);
        // Of the finding, not of the look.
        const later = JSON.parse((await at.ask('GET', '/ops/v1/attention')).text).items;
        expect(later).toContainEqual(listed[0]);
      }
    },
  );

  test.each(
    (['softDelete', 'tombstone', 'cut'] as const).flatMap((what) =>
      [
        { stream: 'meta-idempotency-check', setting: 'IDEMPOTENCY_SECRET' },
        { stream: 'audit-idempotency-secret', setting: 'IDEMPOTENCY_SECRET' },
        { stream: 'meta-webhook-check', setting: 'WEBHOOK_SECRET' },
      ].map((row) => ({ ...row, what })),
    ),
  )('$stream, $what: a start is refused in one line, and claims nothing anew', async (row) => {
    const standIn = await startStandIn();
    const store = await openEventStoreDb({
      url: standIn.url,
      logger: { ...silentLog, debug: () => undefined },
    });
    const checkSecrets = async (): Promise<void> => {
      await withCheckedSecret(store, createIdentities([SECRET]), () => undefined);
      await openWebhookSecret(store, SECRET);
    };
    await checkSecrets();
    standIn.append(row.stream, { type: 'Other', data: '{}' });
    const stored = standIn.dataOf(row.stream).length;
    remove({ standIn }, row);
    await expect(checkSecrets()).rejects.toThrow(
      new RegExp(`^${row.setting}: .*${row.stream}: .*${WAY_OUT.source}$`),
    );
    expect(standIn.dataOf(row.stream).slice(stored)).not.toContainEqual({
      value: expect.anything(),
    });
    await store.close();
    await standIn.close();
  });
});
