/** `npm run test:containers` on a machine without Docker. */
import { spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { cleanEnv, LAUNCHER, NODE } from '../support/service.ts';

const LANE_MS_MAX = 30_000;

/** Nothing listens on port 1, and the Docker settings of the user who runs the tests are not read. */
const withoutDocker = (env: Record<string, string> = {}) =>
  spawnSync(NODE, [LAUNCHER, 'scripts/test-containers.ts'], {
    encoding: 'utf8',
    env: { ...cleanEnv(), DOCKER_HOST: 'tcp://127.0.0.1:1', HOME: '/nonexistent', ...env },
  });

test(
  'npm run test:containers without Docker says in one line what to do; REQUIRE_DOCKER=1 makes that a failure',
  () => {
    const skipped = withoutDocker();
    expect(skipped.status).toBe(0);
    expect(skipped.stdout).toMatch(/^containers lane skipped: .*; install Docker .*\n$/);
    const failed = withoutDocker({ REQUIRE_DOCKER: '1' });
    expect(failed.status).toBe(1);
    expect(failed.stdout).toMatch(/^containers lane failed: .*; install Docker .*\n$/);
  },
  LANE_MS_MAX,
);
