/**
 * A4: the API description against the service by thousands of made-up requests: schemathesis, from
 * PyPI, in a virtual environment of its own that is kept for the next run.
 *
 * Two of its checks are left out because the contract decides otherwise: a request that fits its
 * schema may still break a rule (422, or 400 for an unlisted currency), and `null` counts as absent
 * (gaps §3).
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { startService } from '../support/service-processes.ts';

const VERSION = '4.32.5';
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
  'response_headers_conformance',
  'unsupported_method',
  'allow_header_conformance',
  'missing_required_header',
  'ignored_auth',
];
const EXAMPLES_MAX = 50;
const INSTALL_MS_MAX = 180_000;
const RUN_MS_MAX = 400_000;

const FOLDER = join(tmpdir(), `payments-schemathesis-${VERSION}`);
const PROGRAM = join(FOLDER, 'bin', 'schemathesis');

const runs = (file: string, args: string[]): boolean =>
  spawnSync(file, args, { timeout: INSTALL_MS_MAX, stdio: 'ignore' }).status === 0;

/** Why it cannot be run here; undefined once it is installed. */
const install = (): string | undefined => {
  if (existsSync(PROGRAM) && runs(PROGRAM, ['--version'])) return undefined;
  if (!runs('python3', ['-c', 'import ensurepip, venv'])) return 'no Python 3 with venv';
  const made =
    runs('python3', ['-m', 'venv', '--clear', FOLDER]) &&
    runs(join(FOLDER, 'bin', 'pip'), ['install', '--quiet', `schemathesis==${VERSION}`]);
  return made ? undefined : `schemathesis ${VERSION} could not be installed from PyPI`;
};

const why = install();
const testOrSkip = why === undefined ? test : test.skip;
const name = 'the responses to requests made from the API description are as it says';

const run = async (args: string[]): Promise<{ code: number; output: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-schemathesis-run-'));
  const child = spawn(PROGRAM, args, { cwd: folder, timeout: RUN_MS_MAX });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
  }
  const [code] = await once(child, 'close');
  rmSync(folder, { recursive: true, force: true });
  return { code, output };
};

testOrSkip(why === undefined ? name : `${name} (skipped: ${why})`, async () => {
  await using service = await startService();
  const { code, output } = await run([
    'run',
    `${service.url}/openapi.json`,
    ...['--header', `Authorization: Bearer ${await service.token()}`],
    ...['--checks', CHECKS.join(',')],
    ...['--phases', 'examples,coverage,fuzzing,stateful'],
    // The schema of a stream is that of its whole text; schemathesis holds each event against it.
    ...['--exclude-path', '/api/v1/webhook-events/stream'],
    ...['--max-examples', String(EXAMPLES_MAX), '--seed', '1', '--continue-on-failure'],
  ]);
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/[0-9]+ passed/) });
  // With a token that is rejected every request would be a 401, which the description allows.
  expect(output).not.toContain('Authentication failed');
  expect(output).toMatch(/Tested: 15/);
  const health = await service.get('/health/ready');
  expect(health.json.engines).toMatchObject({ readModels: { parked: 0 } });
});
