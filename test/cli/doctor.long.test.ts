/** `payments doctor` behind the gateway: what the command API cannot see is asked of the projector. */
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { startMongoStandIn } from '../support/mongodb-stand-in.ts';
import { startThreeProcesses } from '../support/service-processes.ts';
import { until } from '../support/until.ts';

test('a broker that is away, and a projector that is, are findings', async () => {
  await using service = await startThreeProcesses({
    MONGODB_URL: await startMongoStandIn(),
    KAFKA_BROKERS: '127.0.0.1:1',
  });
  const doctor = async () => {
    const { JWT_SECRET = '' } = service.env;
    const env = { PAYMENTS_URL: service.url, JWT_SECRET };
    const { code, stdout } = await runCli(['doctor', '--format', 'json'], env);
    return { code, engines: JSON.parse(stdout).engines };
  };
  await until('the relay has met the broker', async () =>
    (await doctor()).engines.some(({ state }: { state: string }) => state === 'backing-off'),
  );
  expect(await doctor()).toEqual({
    code: 1,
    engines: [
      expect.objectContaining({ engine: 'event store', state: 'up' }),
      expect.objectContaining({ engine: 'read models', state: 'up' }),
      expect.objectContaining({ engine: 'provider', state: 'up' }),
      expect.objectContaining({ engine: 'projector', state: 'running', fault: false }),
      expect.objectContaining({ engine: 'Kafka', state: 'backing-off', fault: true }),
    ],
  });

  const [projector] = service.processes.projector;
  projector?.kill('SIGTERM');
  await projector?.exited;
  expect((await doctor()).engines.slice(-2)).toEqual(
    ['projector', 'Kafka'].map((engine) => ({
      engine,
      place: '',
      state: 'unknown',
      fault: true,
      cause: expect.stringContaining('is the projector running'),
    })),
  );
});
