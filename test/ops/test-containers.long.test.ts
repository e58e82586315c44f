/** `npm run test:containers` on a machine without Docker. */
import { spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { cleanEnv, LAUNCHER, NODE } from '../support/service-processes.ts';

/** Nothing listens on port 1, and the Docker settings of the user who runs the tests are not read. */
const withoutDocker = (env: Record<string, string>) =>
  spawnSync(NODE, [LAUNCHER, 'scripts/test-containers.ts'], {
    encoding: 'utf8',
    env: { ...cleanEnv(), DOCKER_HOST: 'tcp://127.0.0.1:1', HOME: '/nonexistent', ...env },
  });

const LANES: [Record<string, string>, string, number][] = [
  [{ REQUIRE_DOCKER: '1' }, 'failed', 1],
  [{}, 'skipped', 0],
];

test.each(LANES)(
  'npm run test:containers without Docker and with %j says in one line what to do: %s, exit code %i',
  (env, word, code) => {
    const { status, stdout } = withoutDocker(env);
    expect(status).toBe(code);
    expect(stdout).toMatch(new RegExp(`^containers lane ${word}: .*; install Docker .*\\n$`));
  },
);
