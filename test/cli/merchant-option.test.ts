/** docs/audit.md: `--merchant` is of a token that is signed; a token that is given has a merchant already. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { expectError, runCli } from '../support/cli.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const folder = folderOfTests();
const out = join(folder, 'of-one.jsonl');
const env = { PAYMENTS_URL: 'http://127.0.0.1:1', PAYMENTS_TOKEN: 'of all merchants' };
const MERCHANT = ['--merchant', 'm_1'];

test.each([
  [['export', '--out', out]],
  [['events', 'pay_1']],
  [['explain', 'pay_1', 'capture']],
  [['verify', '--all']],
  [['listen']],
  [['listen', '--forward-to', 'http://localhost:1/hook']],
  [['reconcile', 'pay_1']],
  [['webhooks', 'list']],
  [['console']],
])(
  'A2: %j --merchant m_1 is wrong usage beside PAYMENTS_TOKEN, before any request',
  async (args) => {
    const { code, stdout, stderr } = await runCli([...args, ...MERCHANT], env);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^payments: PAYMENTS_TOKEN is set.*--merchant has no effect/);
    expect(existsSync(out)).toBe(false);
  },
);

test.each([
  ['find, whose option is a filter', ['find', ...MERCHANT], env],
  ['export without the option', ['export', '--out', out], env],
  ['export with an empty token', ['export', '--out', out, ...MERCHANT], { PAYMENTS_TOKEN: ' ' }],
])('%s goes on to the service', async (_, args, given) => {
  expectError(await runCli(args, { ...env, DATA_DIR: folder, ...given }), 1, 'no service answers');
});

test.each([
  ['--file', ['events', 'pay_1', '--file', 'not read', ...MERCHANT]],
  ['--file', ['verify', '--file', 'not read', ...MERCHANT]],
  ['--read-models', ['verify', '--read-models', ...MERCHANT]],
])('beside %s it is wrong usage, for nothing is of one merchant there: %j', async (other, args) => {
  expectError(await runCli(args), 2, `'--merchant <id>' cannot be used with option '${other}`);
});
