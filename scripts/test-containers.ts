/**
 * `npm run test:containers [-- paths]`: the contract suites and the end-to-end story over EventStoreDB,
 * MongoDB and Kafka as docker-compose.yml starts them, in a Compose project of its own. Without Docker it
 * ends with 0; with REQUIRE_DOCKER=1, 1.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from './free-ports.ts';

const ROOT = join(import.meta.dirname, '..');
const SUITES = ['test/contract', 'test/embedded/story.processes.test.ts'];
const HOW = 'install Docker (https://docs.docker.com/get-docker/) and start it to run it';
/** Every secret of the containers, which only this machine reaches. */
const TRIAL_SECRET = 'a0'.repeat(32);

const FILES = ['docker-compose.yml', 'scripts/test-containers.yml'];
const COMPOSE = ['compose', '-p', 'payments-test', ...FILES.flatMap((file) => ['-f', file])];
const ENGINES = ['eventstoredb', 'mongodb', 'kafka'];
const UP = ['up', '--wait', '--wait-timeout', '180', ...ENGINES];

/** Compose reads every variable of the file, also those of containers that are not started. */
const secrets = (): NodeJS.ProcessEnv => {
  const text = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const names = [...text.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name = '']) => name);
  return Object.fromEntries(names.map((name) => [name, TRIAL_SECRET]));
};

/** Passes signals on, so that the containers end with the tests. */
const run = (file: string, args: string[], env: NodeJS.ProcessEnv): Promise<number> => {
  const child = spawn(file, args, { cwd: ROOT, stdio: 'inherit', env });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
};

const runLane = async (paths: string[]): Promise<number> => {
  const [events, models, kafka] = await freePorts(3);
  const ports = { EVENTSTOREDB_PORT: events, MONGODB_PORT: models, KAFKA_PORT: kafka };
  const texts = Object.entries(ports).map(([name, port]) => [name, String(port)]);
  const env = { ...process.env, ...secrets(), ...Object.fromEntries(texts) };
  const engines = {
    EVENTSTOREDB_URL: `esdb://127.0.0.1:${events}?tls=false`,
    // Direct: the replica set announces a host name that is unknown outside. As root: tests make new databases.
    MONGODB_URL: `mongodb://root:${TRIAL_SECRET}@127.0.0.1:${models}/payments?authSource=admin&directConnection=true`,
    KAFKA_BROKERS: `127.0.0.1:${kafka}`,
    KAFKA_SASL_MECHANISM: 'PLAIN',
    KAFKA_SASL_USERNAME: 'projector',
    KAFKA_SASL_PASSWORD: TRIAL_SECRET,
  };
  const tests = [join(ROOT, 'scripts/test.ts'), ...(paths.length > 0 ? paths : SUITES)];
  try {
    const started = await run('docker', [...COMPOSE, ...UP], env);
    return started || (await run(process.execPath, tests, { ...process.env, ...engines }));
  } finally {
    await run('docker', [...COMPOSE, 'down', '--volumes'], env);
  }
};

// The plug-in and the server have to be there: this asks both.
const { status } = spawnSync('docker', ['compose', 'ls'], { stdio: 'ignore' });
const required = process.env.REQUIRE_DOCKER === '1';
if (status === 0) process.exitCode = await runLane(process.argv.slice(2));
else {
  const reason = `no Docker with Compose answers; ${HOW}`;
  process.stdout.write(`containers lane ${required ? 'failed' : 'skipped'}: ${reason}\n`);
  process.exitCode = required ? 1 : 0;
}
