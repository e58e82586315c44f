/**
 * ADR-0247: the process dies between an intent and its outcome, and is started with another provider. The
 * money that the earlier one moved is recorded once that one is set again, and nothing before.
 */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import type { CrashPoint } from '../support/crash-points.ts';
import { arm, expectDead, repeat, send, startDying, underWay } from '../support/crash-rounds.ts';
import { expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { shareOf } from '../support/long-run-share.ts';
import { providerHere } from '../support/provider-here.ts';
import { metricOf, unresolvedIn } from '../support/service-client.ts';
import { startInProcess } from '../support/service-in-process.ts';
import type { Service } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const start = (dataDir: string, env: NodeJS.ProcessEnv): Promise<Service> =>
  startDying(dataDir, { LOG_LEVEL: 'error', CRASH_ARMED: 'later', ...env });

const POINTS: CrashPoint[] = ['refund: after provider', 'sale: after provider'];

test.each(shareOf(POINTS, 1))(
  'M4, M5: dead at %s and started with another provider: unresolved until the earlier one is back',
  async (point) => {
    using folder = temporaryFolder();
    const dataDir = folder.path;
    await using other = await providerHere(join(dataDir, 'other.sqlite'));
    await using first = await start(dataDir, { CRASH_AT: point });
    const operation = point.startsWith('sale') ? 'sale' : 'refund';
    const was = await underWay(first, point, operation, 'other-provider');
    await arm(first);
    await send(first, was).catch(() => undefined);
    await expectDead(first, point);

    await using second = await start(dataDir, { PROVIDER_URL: other.url });
    const atOther = () => metricOf(second, 'payments_unresolved_at_other_provider');
    await until('recovery has found it', async () => (await atOther()) === 1);
    expect((await send(second, was)).status).toBe(503);
    expect(await unresolvedIn(second)).toBe(1);
    const health = await (await fetch(`${second.url}/health/ready`)).json();
    expect(health).toMatchObject({
      engines: {
        provider: {
          state: 'not the earlier one',
          reason: expect.stringContaining('payments unresolved'),
          unresolvedAtOther: 1,
        },
      },
    });
    const { stdout, stderr } = await runCli(['unresolved'], {
      PORT: String(second.port),
      DATA_DIR: dataDir,
    });
    expect(stdout).toContain('not asked: simulator');
    expect(stderr).toContain('PROVIDER_SAME_AS');
    await until('it is logged', () => second.stdout().includes('"sentTo":"simulator"'));
    expect(other.simulation.list(0, 100).entries).toEqual([]);
    second.kill('SIGTERM');
    await second.exited;

    await using third = await startInProcess({ dataDir, env: { RECOVERY_DELAYS_MS: '50,100' } });
    await until('it is recovered', async () => (await unresolvedIn(third)) === 0);
    await repeat(third, was);
    await third[Symbol.asyncDispose]();
    const [payment] = (await expectLedgerMatchesLog(dataDir)).values();
    expect(payment?.state.status).toBe(operation === 'sale' ? 'CAPTURED' : 'REFUNDED');
  },
);
