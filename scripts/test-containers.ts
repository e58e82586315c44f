/** `npm run test:containers [-- paths]`: engine tests. Without Docker exits 0, or 1 with REQUIRE_DOCKER=1. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  GenericContainer,
  getContainerRuntimeClient,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { type EngineService, engineServices, TRIAL_SECRET } from './compose-engines.ts';
import { freePorts } from './free-ports.ts';

const ROOT = join(import.meta.dirname, '..');
const SUITES = ['[.]contract[.]test', 'test/embedded/story.processes.test.ts'];
const START_MS_MAX = 180_000;
const HOW = 'install Docker (https://docs.docker.com/get-docker/) and start it to run it';

const start = async (
  name: string,
  { image, platform, user, environment, command, healthcheck }: EngineService,
  port: number,
  hostPort?: number,
): Promise<StartedTestContainer> => {
  const container = new GenericContainer(image)
    .withEnvironment(environment)
    // As under Compose, the name of the service is the address of its own container.
    .withExtraHosts([{ host: name, ipAddress: '127.0.0.1' }])
    .withExposedPorts(hostPort === undefined ? port : { container: port, host: hostPort })
    .withHealthCheck(healthcheck)
    .withWaitStrategy(Wait.forHealthCheck())
    .withStartupTimeout(START_MS_MAX);
  if (name === 'mongodb') {
    const source = join(ROOT, 'ops/mongodb');
    container.withCopyDirectoriesToContainer([{ source, target: '/docker-entrypoint-initdb.d' }]);
  }
  if (command !== undefined) container.withCommand(command);
  if (platform !== undefined) container.withPlatform(platform);
  if (user !== undefined) container.withUser(user);
  process.stderr.write(`containers: starting ${image}\n`);
  return container.start();
};

const at = (container: StartedTestContainer, port: number): string =>
  `${container.getHost()}:${container.getMappedPort(port)}`;

/** Adds each container that runs to `started`, even when another one fails. */
const startEngines = async (started: StartedTestContainer[]) => {
  // Kafka tells its clients its port outside, which must be known before it starts.
  const [kafkaPort = 0] = await freePorts(1);
  const { eventstoredb, mongodb, kafka } = engineServices(
    readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'),
    { KAFKA_PORT: String(kafkaPort) },
  );
  const starting = [
    start('eventstoredb', eventstoredb, 2113),
    start('mongodb', mongodb, 27_017),
    start('kafka', kafka, 9094, kafkaPort),
  ] as const;
  for (const one of await Promise.allSettled(starting))
    if (one.status === 'fulfilled') started.push(one.value);
  const [events, readModels, broker] = await Promise.all(starting);
  return {
    EVENTSTOREDB_URL: `esdb://${at(events, 2113)}?tls=false`,
    // Direct: the replica set announces a host name that is unknown outside. As root: tests make new databases.
    MONGODB_URL: `mongodb://root:${TRIAL_SECRET}@${at(readModels, 27_017)}/payments?authSource=admin&directConnection=true`,
    KAFKA_BROKERS: at(broker, 9094),
    KAFKA_SASL_MECHANISM: 'PLAIN',
    KAFKA_SASL_USERNAME: 'projector',
    KAFKA_SASL_PASSWORD: TRIAL_SECRET,
  };
};

const runTests = (args: string[], engines: Record<string, string>): Promise<number> => {
  const tests = spawn(process.execPath, [join(ROOT, 'scripts/test.ts'), ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...engines },
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => tests.kill(signal));
  return new Promise((resolve) => tests.on('exit', (code) => resolve(code ?? 1)));
};

const runLane = async (args: string[]): Promise<number> => {
  const containers: StartedTestContainer[] = [];
  try {
    return await runTests(args.length > 0 ? args : SUITES, await startEngines(containers));
  } catch (error) {
    process.stderr.write(`containers lane failed: ${reasonOf(error)}\n`);
    return 1;
  } finally {
    await Promise.all(containers.map((container) => container.stop()));
  }
};

const required = process.env.REQUIRE_DOCKER === '1';
const hasDocker = await getContainerRuntimeClient().then(
  () => true,
  () => false,
);
if (hasDocker) process.exitCode = await runLane(process.argv.slice(2));
else {
  const reason = `no container runtime answers; ${HOW}`;
  process.stdout.write(`containers lane ${required ? 'failed' : 'skipped'}: ${reason}\n`);
  process.exitCode = required ? 1 : 0;
}
