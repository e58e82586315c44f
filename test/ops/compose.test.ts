/** What docker-compose.yml promises to the operators of an installation (docs/containers.md). */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { engineServices } from '../../scripts/compose-engines.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import type { Mode } from '../../shared/runtime/settings/table.ts';
import { ROOT } from '../support/service-processes.ts';
import { settingsPage } from '../support/settings-page.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

type Service = {
  image: string;
  build?: string;
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: (string | { target: string })[];
  tmpfs?: string[];
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

const folder = folderOfTests();

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

  // Compose refuses the whole file otherwise.
  test('has one thing mounted in a place', () => {
    const targets = [
      ...(container.tmpfs ?? []).map((mount) => mount.split(':')[0]),
      ...(container.volumes ?? []).map((mount) =>
        typeof mount === 'string' ? mount.split(':')[1] : mount.target,
      ),
    ];
    expect(targets).toEqual([...new Set(targets)]);
  });

  test('starts once the services that it cannot do without are healthy', () => {
    for (const [needed, { condition }] of Object.entries(container.depends_on ?? {})) {
      const needsHealthy = name === 'kafka-ui' || needed !== 'kafka';
      expect(condition).toBe(needsHealthy ? 'service_healthy' : 'service_started');
    }
  });

  test('takes every secret from .env', () => {
    for (const [name, value] of Object.entries(container.environment ?? {})) {
      // There is an older secret only while it is rotated.
      if (name.endsWith('_PREVIOUS')) expect(value).toBe(`\${${name}:-}`);
      else if (/SECRET|TOKEN|PASSWORD|_KEY$/.test(name)) {
        expect(value).toMatch(/^\$\{[A-Z_]+:\?fill \.env once by npm run env \(.*\)\}$/);
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
    // A core file would hold card numbers.
    expect(container).toMatchObject({ ulimits: { core: 0 } });
    // ADR-0112: by the launcher, as npm starts it.
    const [node, launcher, main = ''] = command;
    expect([node, launcher]).toEqual(['node', 'scripts/launch.cjs']);
    expect(existsSync(join(ROOT, main))).toBe(true);
    expect(container.healthcheck.test.join(' ')).toContain('/health/ready');
  });

  test('gets settings that it accepts, and the command line in the image of the projector too', () => {
    const mounted = { JWT_JWKS_FILE: join(folder, 'jwks.json') };
    writeFileSync(mounted.JWT_JWKS_FILE, JSON.stringify({ keys: [{ kty: 'EC' }] }));
    const filled = Object.entries({
      ...environment,
      ...('JWT_JWKS_FILE' in environment && mounted),
    }).map(([key, value]) => [
      key,
      value.replace(/\$\{[A-Z_]+:\?.*?\}/, 's'.repeat(43)).replace(/^\$\{.*:-(.*)\}$/, '$1'),
    ]);
    const accepted = { ok: true, config: { host: '0.0.0.0', warnings: [] } };
    expect(loadConfig(Object.fromEntries(filled), mode)).toMatchObject(accepted);
    // docker compose run --rm projector payments keys rotate
    if (mode === 'projector')
      expect(loadConfig(Object.fromEntries(filled))).toMatchObject(accepted);
  });
});

test('docs/containers.md names every setting that .env may leave out', () => {
  const page = readFileSync(join(ROOT, 'docs/containers.md'), 'utf8');
  const names = [...text.matchAll(/\$\{([A-Z_]+):-/g)].map(([, name]) => `\`${name}\``);
  expect(names.length).toBeGreaterThan(15);
  expect([...new Set(names)].filter((name) => !page.includes(name))).toEqual([]);
});

test('the backup of docs/backup.md copies every volume but the topics, into a folder of its user', () => {
  const page = readFileSync(join(ROOT, 'docs/backup.md'), 'utf8');
  const [, block = ''] = /^```sh\n(mkdir -m 700 backup\n.*?)^```$/ms.exec(page) ?? [];
  const copied = [...block.matchAll(/-v payments_([a-z-]+):\/from:ro/g)].map(([, name]) => name);
  const kept = Object.keys(compose.volumes).filter((name) =>
    ['eventstoredb', 'provider', 'projector', 'mongodb'].some((of) =>
      service(of).volumes?.some((mount) => String(mount).startsWith(`${name}:`)),
    ),
  );
  expect(copied.toSorted()).toEqual(kept.toSorted());
});

test('all data is on named volumes, which docker compose down keeps', () => {
  const mounted = (name: string) => service(name).volumes ?? [];
  expect(mounted('eventstoredb')).toEqual(['events:/var/lib/eventstore']);
  expect(mounted('mongodb')[0]).toBe('read-models:/data/db');
  expect(mounted('kafka')).toEqual(['topics:/var/lib/kafka/data']);
  expect(mounted('provider')).toEqual(['provider-ledger:/data']);
  expect(Object.keys(compose.volumes)).toEqual(
    expect.arrayContaining(['events', 'read-models', 'topics', 'provider-ledger']),
  );
  expect(service('eventstoredb').environment?.EVENTSTORE_MEM_DB).toBe('false');
});

test.each([
  ['eventstoredb', 'events', ['command-api', 'query-api', 'projector']],
  ['mongodb', 'models', ['command-api', 'query-api', 'projector']],
  ['provider', 'provider', ['command-api']],
  ['kafka', 'topics', ['projector']],
])('%s is reached on the network %s by %j alone', (engine, network, users) => {
  expect(compose.networks[network]).toEqual({ internal: true });
  const there = services.filter(([, { networks }]) => networks.includes(network));
  expect(there.map(([name]) => name).sort()).toEqual([...users, engine].sort());
});

test('the gateway reaches no engine, and no engine but Kafka has a port outside', () => {
  expect(service('gateway').networks).toEqual(['front']);
  for (const name of ['eventstoredb', 'mongodb', 'provider']) {
    expect(service(name).ports).toBeUndefined();
  }
});

test('each process gets its own secrets and no other', () => {
  const secretsOf = (name: string): string[] => {
    const text = JSON.stringify(service(name).environment ?? {});
    return [
      ...new Set([...text.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, found = '']) => found)),
    ].sort();
  };
  expect(Object.fromEntries(services.map(([name]) => [name, secretsOf(name)]))).toEqual({
    gateway: [],
    'command-api': [
      'IDEMPOTENCY_SECRET',
      'MONGODB_COMMAND_PASSWORD',
      'PERSONAL_DATA_KEK',
      'PROVIDER_TOKEN',
      'WEBHOOK_SECRET',
    ],
    'query-api': [
      'IDEMPOTENCY_SECRET',
      'MONGODB_READ_PASSWORD',
      'PERSONAL_DATA_KEK',
      'WEBHOOK_SECRET',
    ],
    projector: [
      'IDEMPOTENCY_SECRET',
      'KAFKA_SASL_PASSWORD',
      'MONGODB_WRITE_PASSWORD',
      'PERSONAL_DATA_KEK',
      'WEBHOOK_SECRET',
    ],
    provider: ['PROVIDER_TOKEN'],
    eventstoredb: [],
    mongodb: [
      'MONGODB_COMMAND_PASSWORD',
      'MONGODB_KEY',
      'MONGODB_READ_PASSWORD',
      'MONGODB_ROOT_PASSWORD',
      'MONGODB_WRITE_PASSWORD',
    ],
    kafka: ['KAFKA_BROKER_PASSWORD', 'KAFKA_READER_PASSWORD', 'KAFKA_SASL_PASSWORD'],
    'kafka-ui': ['KAFKA_READER_PASSWORD'],
    prometheus: [],
    grafana: [],
    jaeger: [],
  });
  expect(text).not.toContain('JWT_SECRET');
});

test('in MongoDB each process may write what it keeps, and the command API alone changes keys', () => {
  const rolesOf = new Map<string, string[]>();
  const writableBy = new Map<string, string[]>();
  type Role = {
    role: string;
    privileges: { actions: string[]; resource: { collection: string } }[];
  };
  const readModels = {
    createRole: ({ role, privileges }: Role) => {
      for (const { actions } of privileges) expect([...actions]).toEqual(['insert', 'update']);
      writableBy.set(
        role,
        privileges.map(({ resource }) => resource.collection),
      );
    },
    createUser: ({ user, roles }: { user: string; roles: string[] }) => rolesOf.set(user, roles),
  };
  const users = readFileSync(join(ROOT, 'ops/mongodb/users.js'), 'utf8');
  runInNewContext(users, { db: { getSiblingDB: () => readModels }, process: { env: {} } });
  const ofProcess = (name: string): string[] => {
    const user = /mongodb:\/\/(\w+):/.exec(service(name).environment?.MONGODB_URL ?? '')?.[1] ?? '';
    return (rolesOf.get(user) ?? []).flatMap((role) => writableBy.get(role) ?? [role]);
  };
  const [checks, keys] = [['kept'], ['personal_keys', 'personal_keys_checkpoint']];
  expect(ofProcess('query-api')).toEqual(['read', ...checks]);
  expect(ofProcess('command-api')).toEqual(['read', ...checks, ...keys]);
  expect(ofProcess('projector')).toEqual(['readWrite']);
});

test('a setting that is the same in every process is given to each of the three', () => {
  const names = settingsPage
    .filter(({ meaning }) => /every process .*has the same|same in every process/.test(meaning))
    .map(({ name }) => name);
  expect(names).toContain('MAX_OPERATIONS_PER_PAYMENT');
  for (const name of names) {
    const given = ['command-api', 'query-api', 'projector'].map(
      (process) => service(process).environment?.[name],
    );
    expect([name, ...given]).toEqual([name, ...Array(3).fill(expect.stringContaining(name))]);
  }
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
  expect(mongodb.command?.at(-1)).toMatch(/\$MONGODB_KEY.* mongod --replSet rs0 --keyFile/);
  // `ps` shows the arguments of a check to every user of the machine.
  expect(mongodb.healthcheck.test.join(' ')).not.toMatch(/\$MONGO\w*PASSWORD/);
  expect(mongodb.healthcheck).toMatchObject({ interval: 10_000, startPeriod: 120_000 });
  expect(kafka.environment.KAFKA_ADVERTISED_LISTENERS).toContain('localhost:19094');
  expect(() => engineServices(text.replaceAll('interval: 5s', 'interval: soon'))).toThrow(
    'soon is no duration',
  );
});
