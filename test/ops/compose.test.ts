/** What docker-compose.yml promises to the operators of an installation (docs/containers.md). */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { engineServices } from '../../scripts/compose-engines.ts';
import { loadConfig, type Mode } from '../../shared/runtime/config.ts';
import { ROOT } from '../support/service.ts';

type Service = {
  image: string;
  build?: string;
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  networks: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck: { test: string[] };
  cap_drop: string[];
  security_opt: string[];
  restart: string;
  mem_limit: string;
  read_only?: boolean;
  init?: boolean;
  stop_grace_period?: string;
};

const text = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
const compose: {
  services: Record<string, Service>;
  volumes: Record<string, null>;
  networks: Record<string, { internal?: boolean } | null>;
} = parse(text, { merge: true });
const services = Object.entries(compose.services);
const service = (name: string): Service => {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
};

const OURS: Record<string, Mode> = {
  'command-api': 'command-api',
  'query-api': 'query-api',
  projector: 'projector',
  provider: 'provider',
};
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

describe.each(services)('the container of %s', (name, container) => {
  test('has a pinned image, a health check and bounded memory, and restarts', () => {
    expect(container.image).toMatch(/:v?\d+\.\d+\.\d+(-[a-z-]+)?$/);
    expect(container.healthcheck.test[0]).toMatch(/^CMD(-SHELL)?$/);
    expect(container.mem_limit).toMatch(/^\d+[mg]$/);
    expect(container.restart).toBe('unless-stopped');
  });

  test('cannot gain rights', () => {
    expect(container.cap_drop).toEqual(['ALL']);
    expect(container.security_opt).toEqual(['no-new-privileges:true']);
  });

  test('listens on loopback alone, on a port that can be chosen', () => {
    for (const port of container.ports ?? []) {
      expect(port).toMatch(/^127\.0\.0\.1:\$\{[A-Z_]+_PORT:-\d+\}:\d+$/);
    }
  });

  test('starts once the services that it cannot do without are healthy', () => {
    for (const [needed, { condition }] of Object.entries(container.depends_on ?? {})) {
      const needsHealthy = name === 'kafka-ui' || needed !== 'kafka';
      expect(condition).toBe(needsHealthy ? 'service_healthy' : 'service_started');
    }
  });

  test('takes every secret from .env', () => {
    for (const [name, value] of Object.entries(container.environment ?? {})) {
      if (/SECRET|TOKEN|PASSWORD/.test(name)) {
        expect(value).toMatch(new RegExp(`^\\$\\{${name}:\\?fill \\.env once by npm run env`));
      }
    }
  });
});

describe.each(Object.entries(OURS))('the container of our process %s', (name, mode) => {
  const { environment = {}, command = [], ...container } = service(name);

  test('runs the one image read-only, and has more than the 10 s of a stop to end', () => {
    expect(container).toMatchObject({ image: `payments:${version}`, build: '.', init: true });
    expect(container.read_only).toBe(true);
    expect(Number.parseInt(container.stop_grace_period ?? '', 10)).toBeGreaterThanOrEqual(12);
    expect(command[0]).toBe('node');
    expect(existsSync(join(ROOT, command[1] ?? ''))).toBe(true);
    expect(container.healthcheck.test.join(' ')).toContain('/health/ready');
  });

  test('gets settings that it accepts', () => {
    const filled = Object.entries(environment).map(([key, value]) => [
      key,
      value.replace(/^\$\{.*:\?.*\}$/, 's'.repeat(43)).replace(/^\$\{.*:-(.*)\}$/, '$1'),
    ]);
    expect(loadConfig(Object.fromEntries(filled), mode)).toMatchObject({
      ok: true,
      config: { host: '0.0.0.0', warnings: [] },
    });
  });
});

test('all data is on named volumes, which docker compose down keeps', () => {
  const mounted = (name: string) => service(name).volumes ?? [];
  expect(mounted('eventstoredb')).toEqual(['events:/var/lib/eventstore']);
  expect(mounted('mongodb')).toEqual(['read-models:/data/db']);
  expect(mounted('kafka')).toEqual(['topics:/var/lib/kafka/data']);
  expect(mounted('provider')).toEqual(['provider-ledger:/data']);
  expect(Object.keys(compose.volumes)).toEqual(
    expect.arrayContaining(['events', 'read-models', 'topics', 'provider-ledger']),
  );
  expect(service('eventstoredb').environment?.EVENTSTORE_MEM_DB).toBe('false');
});

test('only the processes that use a store can reach it', () => {
  expect(compose.networks.back).toEqual({ internal: true });
  for (const name of ['eventstoredb', 'mongodb', 'provider']) {
    expect(service(name).networks).toEqual(['back']);
    expect(service(name).ports).toBeUndefined();
  }
  expect(service('gateway').networks).toEqual(['front']);
});

test('Kafka gives its name as address to containers, and localhost to programs outside', () => {
  const { environment } = service('kafka');
  expect(environment?.KAFKA_ADVERTISED_LISTENERS).toMatch(
    /^INSIDE:\/\/kafka:9092,LOCALHOST:\/\/localhost:\$\{KAFKA_PORT:-9094\}$/,
  );
  expect(service('kafka').ports?.[0]).toMatch(/:9094$/);
});

test('the containers lane starts the engines as docker-compose.yml says', () => {
  const { eventstoredb, mongodb, kafka } = engineServices(text, { KAFKA_PORT: '19094' });
  expect(eventstoredb.image).toBe(service('eventstoredb').image);
  expect(mongodb.command).toEqual(['mongod', '--replSet', 'rs0', '--bind_ip_all']);
  expect(mongodb.healthcheck).toMatchObject({ interval: 10_000, startPeriod: 120_000 });
  expect(kafka.environment.KAFKA_ADVERTISED_LISTENERS).toContain('localhost:19094');
  expect(() => engineServices(text.replaceAll('interval: 5s', 'interval: soon'))).toThrow(
    'soon is no duration',
  );
});
