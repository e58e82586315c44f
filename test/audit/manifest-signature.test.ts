/** Gaps §25: what the first word of a verification says, and what a manifest may declare. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type ExportLine, readExportLine, startLines } from '../../audit/export-lines.ts';
import { NOT_GOOD, signatureOf } from '../../audit/manifest.ts';
import { hashOf, linkLog } from '../../shared/event-store/chain.ts';
import { ROUTES } from '../../shared/http/route-table.ts';
import { runCli } from '../support/cli.ts';
import { openInProcess, SECRET, token } from '../support/service-in-process.ts';
import { openRows, rewritten } from '../support/tampering.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const FROM_A_CAPTURE = (text: string) => text.replace('"PaymentCaptured"', '"PaymentCapturedd"');

const service = await openInProcess();
for (let n = 0; n < 3; n += 1) await service.create({ captureNow: true });
const env = { PAYMENTS_URL: await service.listen(), JWT_SECRET: SECRET };
const out = join(folderOfTests(), 'kept.jsonl');
let rows: ReturnType<typeof openRows>;

const cli = (...args: string[]) => runCli(args, env);
const isBroken = () => service.metric('payments_log_broken');
const reasons = async () => {
  const { stdout } = await cli('attention', '--format', 'json');
  return JSON.parse(stdout).map(({ reason }: { reason: string }) => reason);
};
const manifest = () => JSON.parse(readFileSync(`${out}.manifest.json`, 'utf8'));
const edit = (change: object) =>
  writeFileSync(`${out}.manifest.json`, JSON.stringify({ ...manifest(), ...change }));

/** Captures of another payment than the last one, with every hash after it made right. */
const rewrite = (change: (text: string) => string) => {
  const { rows: stored } = openRowsAgain();
  const at = stored.findIndex(({ text }) => JSON.parse(text).type === 'PaymentCaptured');
  rows.write(rewritten(stored, at, change));
};
const openRowsAgain = () => {
  rows?.close();
  rows = openRows(`${service.dataDir}/events.sqlite`);
  return rows;
};

afterAll(() => {
  rows?.close();
  return service[Symbol.asyncDispose]();
});
beforeEach(async () => {
  expect((await cli('export', '--out', out, '--force')).stderr).toMatch(/^Keep /);
});

test('the head that verify, export and the manifest name is the log hash at a position', async () => {
  const { position, logHash } = manifest().head;
  const named = `head #${position} ${logHash}`;
  expect((await cli('verify', '--file', out)).stdout).toMatch(
    new RegExp(`^intact {2}\\d+ events, ${named}\n`),
  );
  const { json } = await service.ask('GET', '/audit/v1/verify', undefined, {
    token: await token('*', 'audit:read'),
  });
  const head = json.head as { position: string; logHash: string };
  const [first] = (await cli('verify', '--all')).stdout.split('\n');
  expect(first).toMatch(/^intact {2}\d+ events, head #\d+ [0-9a-f]{64} {2}\(one chain/);
  expect(Number(head.position)).toBeGreaterThan(Number(position));
});

describe('a manifest that was edited', () => {
  test.each<[string, () => object]>([
    ['the time', () => ({ exportedAt: '2020-01-01T00:00:00.000Z' })],
    ['the range', () => ({ range: { from: '0' } })],
    ['the completeness', () => ({ completeness: 'range' })],
    ['the hash of the last event', () => ({ head: { ...manifest().head, hash: 'b'.repeat(64) } })],
    ['the log hash', () => ({ head: { ...manifest().head, logHash: 'b'.repeat(64) } })],
    ['the position', () => ({ head: { ...manifest().head, position: '1' } })],
    ['the stream', () => ({ head: { ...manifest().head, stream: 'payment-other' } })],
    ['the revision', () => ({ head: { ...manifest().head, revision: 7 } })],
    ['the merchant', () => ({ merchantId: 'm_other' })],
    ['the removed streams', () => ({ removed: [] })],
    ['the first position', () => ({ first: { position: '2' } })],
  ])(
    'in %s has no good signature: exit code 3, and nothing else changes',
    async (_what, change) => {
      edit(change());
      for (const against of [
        ['--all', '--manifest', `${out}.manifest.json`],
        ['--file', out],
      ]) {
        const { code, stdout, stderr } = await cli('verify', ...against);
        expect([code, stderr]).toEqual([3, expect.stringContaining(NOT_GOOD)]);
        expect(stdout).not.toMatch(/^intact/);
      }
      expect([await isBroken(), await reasons()]).toEqual([0, []]);
    },
  );

  test('and signed by a key that never sealed the log declares nothing broken', async () => {
    const { signature: _, ...unsigned } = manifest();
    const falseHead = { ...unsigned, head: { ...unsigned.head, stream: 'payment-other' } };
    const { privateKey } = generateKeyPairSync('ed25519');
    edit({ ...falseHead, signature: signatureOf(privateKey, falseHead) });
    expect(await cli('verify', '--all', '--manifest', `${out}.manifest.json`)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(NOT_GOOD),
    });
    expect([await isBroken(), await reasons()]).toEqual([0, []]);
  });

  test('and has no signature any more is still held to its range', async () => {
    edit({ signature: undefined });
    expect((await cli('verify', '--file', out)).stdout).toMatch(/^manifest {2}not signed/m);
    edit({ completeness: 'range' });
    expect(await cli('verify', '--file', out)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('the manifest names no range'),
    });
  });

  test('is signed by no route: the service signs the manifests of its own exports alone', async () => {
    const { signature: _, ...unsigned } = manifest();
    const asking = { token: await token('*', 'audit:read ops:admin') };
    const { status } = await service.ask('POST', '/ops/v1/log/manifest', unsigned, asking);
    expect(status).toBe(404);
    const taking = Object.values(ROUTES).filter(
      ({ scope, method }) => scope === 'audit:read' && method !== 'GET',
    );
    expect(taking.map(({ path }) => path)).toEqual(['/audit/v1/reconcile']);
  });
});

/** As a thief makes an export anew without the key: amounts, hashes and chain, and perhaps the log hashes. */
const forge = (isLinked: boolean) => {
  const lines = startLines();
  const ends = new Map<string, string>();
  let logHash: string | undefined;
  const forged = readFileSync(out, 'utf8')
    .trimEnd()
    .split('\n')
    .map((text) => {
      const line = readExportLine(text) as ExportLine;
      const event = JSON.parse(line.text.replaceAll(/"amount":\d+/g, '"amount":999900'));
      const previousHash = ends.get(line.stream) ?? event.previousHash;
      const changed = JSON.stringify({ ...event, previousHash });
      const hash = hashOf(changed);
      ends.set(line.stream, hash);
      logHash = isLinked && logHash !== undefined ? linkLog(logHash, hash) : (line.logHash ?? '');
      return lines.next({ ...line, id: event.id, text: changed, hash, logHash });
    });
  writeFileSync(out, forged.join(''));
  const { breaks: _, ...totals } = lines.totals();
  return totals;
};

describe.each<[what: string, args: string[], said: object]>([
  ['of one merchant', ['--merchant', 'm_test'], {}],
  ['of what follows a position', ['--from', '2'], {}],
  ['of the whole log', [], { completeness: 'range', range: { from: 'start' } }],
])('a forged export %s, its hashes and chain right', (_what, args, said) => {
  const key = () => join(service.dataDir, 'sealing-key.pem');
  const verify = (...more: string[]) => cli('verify', '--file', out, ...more);
  const paymentId = () => {
    const [, id = ''] = /"stream":"payment-(pay_\w+)"/.exec(readFileSync(out, 'utf8')) ?? [];
    return id;
  };
  const signedByAnother = () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const { signature: _, ...unsigned } = manifest();
    edit({ signature: signatureOf(privateKey, unsigned) });
  };
  beforeEach(async () => {
    const exported = await cli('export', '--out', out, '--force', ...args);
    expect(exported.code).toBe(0);
    for (const more of [[], ['--key', key()]])
      expect(await verify(...more)).toMatchObject({ code: 0, stderr: '' });
  });

  test('is told by the signature, whatever else fits', async () => {
    edit({ ...forge(true), ...said });
    for (const found of [await verify(), await cli('events', paymentId(), '--file', out)])
      expect(found).toMatchObject({ code: 3, stderr: expect.stringContaining(NOT_GOOD) });
  });

  test('is told by the trusted key where another one signed it', async () => {
    edit({ ...forge(true), ...said });
    signedByAnother();
    expect((await verify()).stdout).toMatch(/^manifest {2}signed by a key that was not checked/m);
    for (const found of [
      await verify('--key', key()),
      await cli('events', paymentId(), '--file', out, '--key', key()),
    ])
      expect(found).toMatchObject({ code: 3, stderr: expect.stringContaining(NOT_GOOD) });
  });

  test('is told by the log hashes where the signature was taken out, and is never proven by a key', async () => {
    edit({ ...forge(false), ...said, signature: undefined });
    expect(await verify()).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('it does not follow in the log'),
    });
    await cli('export', '--out', out, '--force', ...args);
    edit({ ...forge(true), ...said, signature: undefined });
    expect((await verify()).stdout).toMatch(/^manifest {2}not signed/m);
    expect(await verify('--key', key())).toMatchObject({ code: 1, stdout: '' });
  });
});

describe('a rewritten log whose every hash is right', () => {
  const dearer = (text: string) => text.replace(/"correlationId":"./, '"correlationId":"x');

  test('is declared broken by a signed manifest, until the same check finds it no more', async () => {
    const kept = `${out}.manifest.json`;
    rewrite(dearer);
    expect(await cli('verify', '--all', '--manifest', kept)).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^BROKEN {2}/),
      stderr: expect.stringContaining('the log was rewritten'),
    });
    await until('it is kept', async () => (await reasons()).includes('LOG_BROKEN'));
    expect(await isBroken()).toBe(1);
    expect(await cli('verify', '--all')).toMatchObject({ code: 0 });
    expect([await isBroken(), await reasons()]).toEqual([1, ['LOG_BROKEN']]);
    rows.restore();
    expect(await cli('verify', '--all', '--manifest', kept)).toMatchObject({ code: 0 });
    await until('it is kept', async () => (await reasons()).length === 0);
    expect(await isBroken()).toBe(0);
  });

  test('is told to the auditor who compares an unsigned manifest, and to no operator', async () => {
    edit({ signature: undefined });
    rewrite(dearer);
    expect((await cli('verify', '--all', '--manifest', `${out}.manifest.json`)).code).toBe(3);
    expect([await isBroken(), await reasons()]).toEqual([0, []]);
    rows.restore();
  });
});

describe('an event that cannot be read, with its hashes right', () => {
  test('makes the log, its payment and its export INCOMPLETE with exit code 3, and pages no operator', async () => {
    rewrite(FROM_A_CAPTURE);
    const incomplete = {
      code: 3,
      stdout: expect.stringMatching(/^INCOMPLETE {2}.*: 1 event cannot be read\n/),
    };
    expect(await cli('verify', '--all')).toMatchObject(incomplete);
    expect((await cli('export', '--out', out, '--force')).code).toBe(3);
    expect(await cli('verify', '--file', out)).toMatchObject(incomplete);
    expect(await isBroken()).toBe(0);
    expect(await reasons()).not.toContain('LOG_BROKEN');
    rows.restore();
  });
});

test('amounts above their intent, with every hash right, break an export as they break the log', async () => {
  rewrite((text) => text.replace(/"amount":(\d+)/, '"amount":9$1'));
  await cli('export', '--out', out, '--force');
  const broken = { code: 3, stdout: expect.stringMatching(/^BROKEN {2}/) };
  expect(await cli('verify', '--file', out)).toMatchObject({
    ...broken,
    stderr: expect.stringContaining('that its intent requested'),
  });
  expect(await cli('verify', '--all')).toMatchObject(broken);
  rows.restore();
});
