/** The address of EventStoreDB is checked with all other settings, before anything opens. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../shared/runtime/load-config.ts';

const SECRET = 's'.repeat(32);
const problemsOf = (url: string): string[] => {
  const read = loadConfig({
    EVENTSTOREDB_URL: url,
    IDEMPOTENCY_SECRET: SECRET,
    WEBHOOK_SECRET: SECRET,
    PERSONAL_DATA_KEK: SECRET,
  });
  return read.ok ? [] : read.problems;
};

describe('an address that cannot be used is one line', () => {
  test.each([
    ['esdb://events.example', 'needs user:password@ before the host, unless it ends in ?tls=false'],
    ['esdb://reader@events.example', 'has a login that is not user:password'],
    ['esdb://reader:50%@events.example', 'has a login with a % that is not followed by two hex'],
    ['esdb://127.0.0.1:2113,127.0.0.1:99999?tls=false', 'has a port that is not 1 to 65535'],
    ['esdb://u:hunter2@events.example?tls=maybe', 'has tls neither true nor false'],
    ['esdb://u:p@events.example?tlsCAFil=/ca.crt', 'has an unknown option; known are'],
    ['esdb://u:p@events.example?gossipTimeout=soon', 'has a gossipTimeout that is no whole number'],
    ['esdb://u:p@events.example?defaultDeadline=', 'has defaultDeadline without a value'],
    [
      'esdb://u:p@events.example?tlsCAFile=/no/such/ca.crt',
      'has a tlsCAFile, which names a file that cannot be read (ENOENT)',
    ],
    [
      `esdb://u:p@events.example?tlsCAFile=${encodeURIComponent(import.meta.filename)}`,
      'has a tlsCAFile, which holds no certificate in PEM',
    ],
  ])('%s', (url, expected) => {
    const [problem = '', ...others] = problemsOf(url);
    expect([problem, others]).toEqual([
      expect.stringContaining(`EVENTSTOREDB_URL ${expected}`),
      [],
    ]);
    expect(problem).not.toContain('hunter2');
  });

  test.each([
    'esdb://127.0.0.1:2113?tls=false',
    'esdb+discover://u:p%40x@cluster.example:2113',
    'esdb://u:p@one.example:2113,two.example:2113,three.example?nodePreference=leader',
    'esdb://u:p@events.example?tls=true&keep_alive_interval=5000&TLSCAFILE=',
  ])('%s has none', (address) => {
    const folder = mkdtempSync(join(tmpdir(), 'payments-ca-'));
    const file = join(folder, 'ca.crt');
    writeFileSync(file, rootCertificates[0] ?? '');
    expect(problemsOf(address.endsWith('=') ? `${address}${file}` : address)).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});
