/** The image is built and serves a payment, where Docker runs and has the base image, or may pull it. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { testUnless } from '../support/describe-driver.ts';
import { freePort } from '../support/free-port.ts';
import { ROOT } from '../support/service-processes.ts';
import { until } from '../support/until.ts';

const NAME = `payments-image-test-${process.pid}`;

const docker = (...args: string[]) =>
  spawnSync('docker', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });

const [, base = ''] =
  /^ARG NODE_IMAGE=(\S+)$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];
const hasBase = (): boolean => docker('image', 'inspect', base).status === 0;
const missing =
  docker('info').status !== 0
    ? 'Docker does not run here'
    : hasBase() || docker('pull', base).status === 0
      ? undefined
      : `${base} is not there and cannot be pulled`;

afterAll(() => {
  if (missing !== undefined) return;
  docker('rm', '--force', NAME);
  docker('image', 'rm', '--force', NAME);
});

testUnless(
  missing,
  'the image is built, holds one Node, takes a payment with a read-only root, and ends with 0',
  async () => {
    const built = docker('build', '--network', 'host', '-t', NAME, '.');
    expect([built.status, built.stderr.slice(-2_000)]).toEqual([0, expect.anything()]);
    const bundled = docker('run', '--rm', NAME, 'sh', '-c', 'ls -d node_modules/node-*');
    expect(bundled.stdout).not.toContain('node-linux');
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const settings = ['-e', `PORT=${port}`, '-e', 'HOST=127.0.0.1'];
    const confined = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--network', 'host'];
    expect(docker('run', '-d', '--name', NAME, ...confined, ...settings, NAME).status).toBe(0);
    const isReady = () =>
      fetch(`${url}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until('the image serves', isReady);
    const token = docker('exec', NAME, 'payments', 'token').stdout.trim();
    const response = await fetch(`${url}/api/v1/payments`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(payment),
    });
    expect(response.status).toBe(200);
    docker('stop', '-t', '15', NAME);
    const { stdout } = docker('inspect', NAME, '--format', '{{.State.ExitCode}}');
    expect(stdout.trim()).toBe('0');
  },
);
