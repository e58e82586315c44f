/**
 * What the log lost is never answered as if it had never been, and no command is carried out on
 * what is left of it. The whole service in one process, on a stand-in for EventStoreDB.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { streamOf } from '../../shared/payment/events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import {
  type CommandResponse,
  type InProcess,
  openInProcess,
  PAYMENTS,
  SECRET,
  signToken,
  token,
} from '../support/in-process.ts';
import { until } from '../support/until.ts';

type LogEntry = { paymentId?: string; revision: number; position: string };

const WAYS = {
  'soft delete': (standIn: StandIn, stream: string) => standIn.softDelete(stream),
  tombstone: (standIn: StandIn, stream: string) => standIn.tombstone(stream),
  truncation: (standIn: StandIn, stream: string) => standIn.truncate(stream, 1),
};

describe.each(Object.entries(WAYS))('after a %s of its stream', (way, remove) => {
  let standIn: StandIn;
  let service: InProcess;
  let sold: string;
  let other: string;

  const sale = async (key: string): Promise<CommandResponse> =>
    service.create({ captureNow: true }, { key });
  const parked = () =>
    until('it is parked', async () => {
      const { json } = await service.ask('GET', '/health/ready', undefined, { token: null });
      return (json.engines as { readModels: { parked: number } }).readModels.parked === 1;
    });
  const history = async (merchant: string) =>
    service.ask('GET', `/audit/v1/payments/${sold}/events`, undefined, {
      token: await signToken({ merchant_id: merchant, sub: 'auditor', scope: 'audit:read' }),
    });

  const expectNotWhole = ({ status, json, headers }: CommandResponse): void => {
    expect({ status, error: json.error }).toEqual({ status: 503, error: 'SERVICE_UNAVAILABLE' });
    expect(json.details).toEqual([expect.stringContaining('an operator has to look at it')]);
    expect(headers['retry-after']).toBe('30');
  };
  const expectBarred = async (): Promise<void> => {
    const before = await service.ledger();
    expectNotWhole(await service.get(sold));
    expectNotWhole(await service.change('refund', sold, { refundAmount: 100 }));
    expectNotWhole(await service.change('refund', sold, { refundAmount: 100 }, { key: 'refund' }));
    expectNotWhole(await service.change('void', sold));
    expect(await service.ledger()).toEqual(before);
  };

  beforeAll(async () => {
    standIn = await startStandIn();
    service = await openInProcess({
      EVENTSTOREDB_URL: standIn.url,
      IDEMPOTENCY_SECRET: SECRET,
      WEBHOOK_SECRET: SECRET,
    });
    sold = String((await sale('sold')).json.paymentId);
    remove(standIn, streamOf(sold));
    await parked();
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await standIn.close();
  });

  test('GET and commands are 503, and the provider is not called', async () => {
    await expectBarred();
    // A repeat of its create finds no new payment to make.
    const before = await service.ledger();
    expectNotWhole(await sale('sold'));
    expect(await service.ledger()).toEqual(before);
    const stranger = { token: await token('m_2') };
    expect((await service.get(sold, stranger)).status).toBe(404);
    expect((await service.change('refund', sold, {}, stranger)).status).toBe(404);
  });

  test('its history says to an auditor why it is not whole', async () => {
    expect((await history('m_2')).status).toBe(404);
    const { json } = await history('*');
    const gone = 'deleted at the server of the event store';
    const reason = way === 'truncation' ? 'revision 0 is missing' : gone;
    expect(json.broken).toMatchObject({ stream: streamOf(sold), reason });
  });

  test('others do not notice, and it stays in the list', async () => {
    const made = await sale('other');
    expect(made.status).toBe(200);
    other = String(made.json.paymentId);
    expect((await service.get(other)).status).toBe(200);
    const { json } = await service.ask('GET', PAYMENTS);
    expect(json.payments).toMatchObject([{ paymentId: other }, { paymentId: sold }]);
    expect((await service.change('refund', other, { refundAmount: 100 })).status).toBe(200);
    expect((await service.ask('GET', '/health/ready', undefined, { token: null })).status).toBe(
      200,
    );
    expect((await service.ask('GET', '/metrics', undefined, { token: null })).text).toMatch(
      /^payments_parked 1$/m,
    );
  });

  test('another merchant reads on from between two of its events', async () => {
    const ask = async (merchant: string, query: string) =>
      service.ask('GET', `/audit/v1/events?${query}`, undefined, {
        token: await signToken({ merchant_id: merchant, sub: 'auditor', scope: 'audit:read' }),
      });
    const foreign = await service.create({}, { token: await token('m_2') });
    const { events } = (await ask('*', 'limit=1000')).json;
    const second = (events as LogEntry[]).find(
      ({ paymentId, revision }) => paymentId === sold && revision === 1,
    );
    const { status, json } = await ask('m_2', `from=${second?.position}`);
    expect(status).toBe(200);
    const seen = (json.events as LogEntry[]).map(({ paymentId }) => paymentId);
    expect(new Set(seen)).toEqual(new Set([foreign.json.paymentId]));
  });

  test('the same after a restart and a scavenge', async () => {
    await sale('later');
    standIn.scavenge();
    await service.restart();
    await expectBarred();
    // The provider holds what the log lost, and yet the log is no older copy.
    expect((await sale('after')).status).toBe(200);
  });

  test('the log is exported, also where its seals are removed too', async () => {
    remove(standIn, SEALS_STREAM);
    const { status, headers } = await service.ask('GET', '/audit/v1/events', undefined, {
      token: await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' }),
      headers: { accept: 'application/x-ndjson' },
    });
    expect([status, headers['export-guarantee']]).toEqual([200, 'stream']);
  });
});
