/**
 * The number and the CVV of a card do not outlive their call. What is overwritten and what is
 * only released is said in docs/secrets.md: this holds that nothing keeps them.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { luhnNumber } from '../support/card-search.ts';
import { NODE, ROOT, runCliProcess } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const { path: folder, remove } = temporaryFolder();
afterAll(remove);

const CREATES = 5;
const numberOf = (n: number): string => luhnNumber(`4711${String(n).padStart(11, '83')}`);
const cvvOf = (n: number): string => `CVV of canary ${n}`;

/** The service on a Node that writes a heap snapshot at SIGUSR2. */
const start = async () => {
  const env = { PATH: process.env.PATH, DATA_DIR: join(folder, 'data'), PORT: '0' };
  const args = ['--heapsnapshot-signal=SIGUSR2', join(ROOT, 'embedded/main.ts')];
  const child = spawn(NODE, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    stderr += part;
  });
  await until('the service listens', () => /http:\S+\/api/.test(stderr));
  const url = /http:\/\/[^/]+/.exec(stderr)?.[0] ?? '';
  const { stdout } = await runCliProcess(['token'], env);
  return { child, url, token: stdout.trim(), stderr: () => stderr };
};

test('seconds after a create nothing in the heap holds its number or CVV, and SIGUSR1 opens no debugger', async () => {
  const { child, url, token, stderr } = await start();
  try {
    for (let n = 0; n < CREATES; n += 1) {
      const card = { ...payment.paymentMethod.card, number: numberOf(n), cvv: cvvOf(n) };
      const response = await fetch(`${url}/api/v1/payments`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({ ...payment, paymentMethod: { type: 'CARD', card } }),
      });
      expect(response.status).toBe(200);
      await response.text();
    }
    child.kill('SIGUSR1');
    child.kill('SIGUSR2');
    const snapshot = () => readdirSync(folder).find((name) => name.endsWith('.heapsnapshot'));
    await until('the snapshot is begun', () => snapshot() !== undefined);
    // The thread that writes it is the one that responds; kept connections have timed out meanwhile.
    const responds = () =>
      fetch(`${url}/health/live`).then(
        () => true,
        () => false,
      );
    await until('it is written', responds);
    const text = readFileSync(join(folder, snapshot() ?? ''), 'utf8');
    // The search finds what is there: the route is a string of the heap.
    expect(text).toContain('/api/v1/payments');
    const held = Array.from({ length: CREATES }, (_, n) => [numberOf(n), cvvOf(n)]).flat();
    expect(held.filter((secret) => text.includes(secret))).toEqual([]);
    expect(stderr()).not.toContain('Debugger');
  } finally {
    child.kill();
    await once(child, 'close');
  }
});
