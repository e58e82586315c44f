/** The service in this process on a stand-in for EventStoreDB, and the command line beside it. */
import { join } from 'node:path';
import { streamOf } from '../../shared/payment/events.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { runCli } from './cli.ts';
import { startStandIn } from './eventstoredb-stand-in.ts';
import {
  type InProcess,
  idOf,
  type OpenedOver,
  openInProcess,
  SECRETS,
  signToken,
} from './service-in-process.ts';
import { until } from './until.ts';

export type ServerService = Awaited<ReturnType<typeof openServerService>>;

const capture = async (service: InProcess): Promise<string> =>
  idOf(await service.create({ captureNow: true }));

/** Where the events are on a server, no secret is in the data folder. */
export const settingsAt = (url: string) => ({ EVENTSTOREDB_URL: url, ...SECRETS });

/** Opens it with two captured payments, both in the read models. */
export const openServerService = async (
  settings: Record<string, string> = {},
  over: OpenedOver = {},
  log?: Log,
) => {
  const standIn = await startStandIn();
  const own = settingsAt(standIn.url);
  const service = await openInProcess({ ...own, ...settings }, log, over);
  const url = await service.listen();
  const token = await signToken({
    merchant_id: '*',
    sub: 'ann@example.com',
    scope: 'audit:read ops:admin',
  });
  const ask = (method: string, path: string, body?: unknown) =>
    service.ask(method, path, body, { token });
  const parkedNow = async (): Promise<number> => {
    const { text } = await service.ask('GET', '/health/ready', undefined, { token: null });
    return JSON.parse(text).engines.readModels.parked;
  };
  const [hit, other] = [await capture(service), await capture(service)];
  await until('both are in the read models', async () => {
    const { text } = await ask('GET', '/ops/v1/projections');
    return JSON.parse(text).projections[0].lagEvents === 0;
  });
  const env = {
    PAYMENTS_URL: url,
    PAYMENTS_TOKEN: token,
    DATA_DIR: service.dataDir,
    ...own,
  };
  return {
    standIn,
    service,
    /** Captured payments: what is done at the server is done to the first. */
    hit,
    other,
    /** A request by an operator and auditor of all merchants. */
    ask,
    /** The environment of the commands. */
    env,
    /** A command by the same, to its end. */
    cli: (...args: string[]) => runCli(args, env),
    /** Resolves when so many payments are parked. */
    parked: (count: number) =>
      until(`${count} are parked`, async () => (await parkedNow()) === count),
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await standIn.close();
    },
  };
};

/** Exports the log, or one payment; gives the run of the export and that of a verification of the file. */
export const exportAndVerify = async (
  { cli, service }: ServerService,
  name: string,
  ...paymentId: string[]
) => {
  const out = join(service.dataDir, `${name}.jsonl`);
  const exported = await cli('export', ...paymentId, '--out', out);
  return { exported, verified: await cli('verify', '--file', out) };
};

/** Changes at the server with the rights of its administrator, or to append alone. */
export const AT_SERVER = {
  softDelete: ({ standIn, hit }: ServerService) => standIn.softDelete(streamOf(hit)),
  tombstone: ({ standIn, hit }: ServerService) => standIn.tombstone(streamOf(hit)),
  maxCount: ({ standIn, hit }: ServerService) => standIn.metadata(streamOf(hit), { $maxCount: 1 }),
  truncate: ({ standIn, hit }: ServerService) => standIn.truncate(streamOf(hit), 1),
  refuse: ({ standIn, hit }: ServerService) =>
    standIn.metadata(streamOf(hit), { $acl: { $r: '$admins' } }),
  scavenge: ({ standIn }: ServerService) => standIn.scavenge(),
  /** Takes also the event by which the server says that a stream is gone for good. */
  scavengeTombstone: ({ standIn }: ServerService) => {
    standIn.scavenge();
    standIn.edit((events) => events.filter(({ type }) => type !== '$streamDeleted'));
  },
  foreignIn: ({ standIn }: ServerService, stream: string) =>
    standIn.append(stream, { type: 'Other', data: '{"amount":1}' }),
  copyOfLast: ({ standIn, hit }: ServerService) => {
    let last = { type: '', data: '', metadata: '' };
    standIn.edit((events) => {
      const found = events.findLast(({ stream }) => stream === streamOf(hit));
      const text = (base64 = '') => Buffer.from(base64, 'base64').toString();
      last = {
        type: found?.type ?? '',
        data: text(found?.data),
        metadata: text(found?.metadata),
      };
      return [...events];
    });
    standIn.append(streamOf(hit), last);
  },
};
