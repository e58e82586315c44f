/** Who the server is, what its user may do, and how it is given that right alone. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { lookAtEventStoreServer, serverRows } from '../../cli/doctor-engines.ts';
import { limitUser } from '../../shared/event-store/eventstoredb/limited-user.ts';
import { askServer } from '../../shared/event-store/eventstoredb/server-facts.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';

let server: StandIn;
afterEach(() => server.close());

describe('doctor asks the server', () => {
  test('who it is, and warns where its user may delete', async () => {
    server = await startStandIn();
    const finding = await lookAtEventStoreServer(server.url);
    const [address = ''] = /127\.0\.0\.1:\d+/.exec(server.url) ?? [];
    expect(serverRows(finding)).toEqual([
      ['  version', '24.10.9, supported'],
      [`  ${address}`, 'leader'],
      ['  read $all', 'allowed'],
      ['  append', 'allowed'],
      ['  delete streams', 'allowed'],
      ['  rewrite metadata', 'allowed'],
    ]);
    expect([finding.faults, finding.warnings]).toEqual([
      [],
      [
        'the server checks no user: any client may delete streams and rewrite their metadata, so the log is append-only by our word alone',
      ],
    ]);
  });

  test.each([
    ['24.10.9', '24.10.9, supported', []],
    ['26.1.0', '26.1.0, supported', []],
    [
      '23.10.6.0',
      '23.10.6.0',
      [
        'its maker no longer supports 23.10, which works as measured: EventStoreDB 24.10 and KurrentDB 26 are supported',
      ],
    ],
    [
      '27.0.0',
      '27.0.0',
      [
        'the service was never measured on this version: EventStoreDB 24.10 and KurrentDB 26 are supported',
      ],
    ],
  ])('and says of %s whether it is supported', async (version, row, warnings) => {
    server = await startStandIn({ version, refusesDeletes: true });
    const finding = await lookAtEventStoreServer(server.url);
    expect(serverRows(finding)[0]).toEqual(['  version', row]);
    expect(finding.warnings.filter((warning) => /measured/.test(warning))).toEqual(warnings);
  });

  test('and sees that a delete is refused, on a stream of its own alone', async () => {
    server = await startStandIn({ refusesDeletes: true });
    expect(await askServer(server.url)).toMatchObject({ append: 'allowed', remove: 'refused' });
    const own = [...server.streams()].filter((stream) => !/^\$/.test(stream));
    expect(own).toEqual([expect.stringMatching(/^doctor-[0-9a-f-]{36}$/)]);
  });

  test('and names the command that gives a user the right to read the log', async () => {
    server = await startStandIn({ refusesDeletes: true });
    server.refuseAll(true);
    expect((await lookAtEventStoreServer(server.url)).faults).toEqual([
      'the user may not read $all, so no read model can follow: `npm run eventstoredb:rights -- <user>` gives it that right',
    ]);
  });

  test('and says that an address names one node of a cluster', async () => {
    server = await startStandIn({ followers: 2, refusesDeletes: true });
    const { warnings, members } = await lookAtEventStoreServer(server.url);
    expect(members.map(({ state }) => state)).toEqual(['leader', 'follower', 'follower']);
    expect(warnings).toContain(
      'the address names one node of a cluster: name all of them, so that another can lead',
    );
  });

  test('and knows nothing of one that does not answer, within its time', async () => {
    server = await startStandIn();
    server.freeze(true);
    const facts = await askServer(server.url, 100);
    expect(facts).toMatchObject({ readAll: 'unknown', append: 'unknown' });
    server.freeze(false);
  });
});

test('the rights of a user are the metadata of $all and one event of $settings', async () => {
  server = await startStandIn();
  await limitUser(server.url, 'payments');
  expect(server.dataOf('$$$all')).toEqual([{ $acl: { $r: ['payments', '$admins'] } }]);
  const [settings] = server.dataOf('$settings').slice(-1);
  const [both, admins] = [['payments', '$admins'], '$admins'];
  expect(settings).toMatchObject({
    $userStreamAcl: { $r: both, $w: both, $mr: both, $d: admins, $mw: admins },
    $systemStreamAcl: { $r: admins, $w: admins, $d: admins, $mr: admins, $mw: admins },
  });
});
