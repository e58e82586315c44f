/**
 * What a wrong address, a wrong password or a missing right is to an operator: one plain line with what
 * to do, and a service that is not ready as long as it lasts. On a stand-in with TLS and a user.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import { limitUser } from '../../shared/event-store/eventstoredb/limited-user.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { hasOpenssl, ownCertificate } from '../support/own-certificate.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { batchOf } from './opened.ts';

const warnings: string[] = [];
let store: EventStoreDb;
const open = async (url: string): Promise<EventStoreDb> => {
  warnings.splice(0);
  const warn = (_: object, message: string) => void warnings.push(message);
  store = await openEventStoreDb({ url, logger: { debug: () => undefined, warn } });
  return store;
};
const portOf = ({ url }: StandIn): string => /:(\d+)\?/.exec(url)?.[1] ?? '';

afterEach(() => store.close());

// Where the machine has no openssl, there is no certificate to try.
(hasOpenssl ? describe : describe.skip)('a server with TLS and a user', () => {
  const folder = temporaryFolder();
  const caFile = join(folder.path, 'ca.crt');
  let secure: StandIn;
  let plain: StandIn;
  beforeAll(async () => {
    const certificate = ownCertificate('DNS:localhost');
    writeFileSync(caFile, certificate.cert);
    secure = await startStandIn({ certificate, user: 'payments:right' });
    plain = await startStandIn();
  });
  afterAll(async () => {
    await secure.close();
    await plain.close();
    folder.remove();
  });

  test('takes appends from its user', async () => {
    await open(`esdb://payments:right@localhost:${portOf(secure)}?tlsCAFile=${caFile}`);
    await store.ping();
    expect(await store.append('payment-1', 'none', batchOf(2))).toHaveLength(2);
  });

  test('says to an administrator which address is wrong', async () => {
    await open(secure.url);
    const url = `esdb://payments:wrong@localhost:${portOf(secure)}?tlsCAFile=${caFile}`;
    await expect(limitUser(url, 'payments')).rejects.toThrow(
      /^event store: the server knows no such user, .* put both right in EVENTSTOREDB_ADMIN_URL$/,
    );
  });

  test.each([
    [
      'a wrong password',
      () => `esdb://payments:wrong@localhost:${portOf(secure)}?tlsCAFile=${caFile}`,
      'the server knows no such user, or with another password: put both right in EVENTSTOREDB_URL',
    ],
    [
      'an authority that is not named',
      () => `esdb://payments:right@localhost:${portOf(secure)}`,
      "the server's certificate is not of a known authority: name that one's certificate in EVENTSTOREDB_URL, ?tlsCAFile=/path/ca.crt",
    ],
    [
      'TLS where the server has none',
      () => `esdb://payments:right@localhost:${portOf(plain)}`,
      'the server uses no TLS at this port: give it a certificate, or end EVENTSTOREDB_URL in ?tls=false',
    ],
    [
      'no TLS where the server has it',
      () => `esdb://localhost:${portOf(secure)}?tls=false`,
      'the server takes no connection without TLS at this port: take tls=false out of EVENTSTOREDB_URL',
    ],
  ])('says of %s what to do, in one line', async (_, urlOf, advice) => {
    await open(urlOf());
    const line = new StoreUnavailable(`event store: ${advice}`);
    await expect(store.ping()).rejects.toEqual(line);
    await expect(store.end()).rejects.toEqual(line);
    await expect(store.readStream('payment-1')).rejects.toEqual(line);
    await expect(store.append('payment-2', 'none', batchOf(1))).rejects.toEqual(line);
    const stop = new AbortController();
    const ended = store.subscribe(null, stop.signal)[Symbol.asyncIterator]().next();
    await until('the subscription has failed', () => warnings.length > 0);
    stop.abort();
    await ended;
    expect(warnings).toEqual([`${line.message}; subscribing again until it succeeds`]);
  });
});

const health = () =>
  store.ping().then(
    () => 'up',
    (error: Error) => error.message,
  );
const NO_RIGHT =
  'event store: the user lacks the right to read $all, or to append: `npm run eventstoredb:rights -- <user>` gives both (docs/eventstoredb.md)';

test('a user that may not read $all, or loses the right, is named to health until it may; the rest goes on', async () => {
  const standIn = await startStandIn();
  const stop = new AbortController();
  try {
    standIn.refuseAll(true);
    await open(standIn.url);
    await store.ping();
    const items = store.subscribe(null, stop.signal)[Symbol.asyncIterator]();
    const first = items.next();
    await until('health says so', async () => (await health()) === NO_RIGHT);
    await store.append('payment-1', 'none', batchOf(2));
    standIn.refuseAll(false);
    expect((await first).value).toMatchObject({ kind: 'events' });
    await until('health is up', async () => (await health()) === 'up');

    standIn.refuseAll(true);
    await expect(store.end()).rejects.toThrow(NO_RIGHT);
    await until('health says so', async () => (await health()) === NO_RIGHT);
    await store.append('payment-2', 'none', batchOf(1));
    let item = (await items.next()).value;
    while (item?.kind !== 'events') item = (await items.next()).value;
    expect(await health()).toBe(NO_RIGHT);
    standIn.refuseAll(false);
    await store.end();
    await until('health is up', async () => (await health()) === 'up');
  } finally {
    stop.abort();
    await standIn.close();
  }
});
