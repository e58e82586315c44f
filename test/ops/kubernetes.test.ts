/** The manifests of ops/kubernetes: their form, the settings of each process, and what keeps payments safe (docs/kubernetes.md). */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseEnv } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { newSealingKey } from '../../audit/seals/key.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import type { Mode } from '../../shared/runtime/settings/table.ts';
import { projectFiles, textOf } from '../support/project-files.ts';
import { ROOT } from '../support/service-processes.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const FOLDER = join(ROOT, 'ops/kubernetes');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

type Container = {
  image: string;
  command: string[];
  env?: { name: string; value: string }[];
  ports: { containerPort: number }[];
  livenessProbe: { httpGet: { path: string } };
  readinessProbe: { httpGet: { path: string } };
  lifecycle: { preStop: { exec: { command: string[] } } };
};
type Volume = {
  name: string;
  emptyDir?: object;
  configMap?: object;
  projected?: { sources: { secret: { name: string } }[] };
};
/** What is read here of a manifest; the document of the API says what it may be. */
type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: {
    replicas: number;
    podManagementPolicy?: string;
    template: {
      spec: { terminationGracePeriodSeconds: number; containers: Container[]; volumes: Volume[] };
    };
  };
};

const kustomization = parse(read('kustomization.yaml'));
const files: string[] = kustomization.resources;
const manifests: Manifest[] = files.flatMap((name) =>
  parseAllDocuments(read(name)).map((document) => document.toJS()),
);
const workloads = manifests.filter(({ kind }) => ['Deployment', 'StatefulSet'].includes(kind));
const processes = workloads.filter(({ metadata }) => metadata.name !== 'gateway');
const ofKind = (kind: string) => manifests.filter((one) => one.kind === kind);

test('every manifest of the folder is among the resources', () => {
  const there = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));
  expect([...files, 'kustomization.yaml'].sort()).toEqual(there.sort());
});

/** Kubernetes' own document, cut down to the kinds that are used here. */
const API = JSON.parse(
  gunzipSync(readFileSync(join(import.meta.dirname, 'kubernetes-1.34.4.json.gz'))).toString(),
);
const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
ajv.addSchema({ $id: 'kubernetes', definitions: API.definitions });

/** What the API of Kubernetes would refuse in a manifest: a field that it does not know, too. */
const refusedBy = (manifest: { apiVersion: string; kind: string }): string[] => {
  const definition = API.kinds[`${manifest.apiVersion}/${manifest.kind}`];
  const valid = ajv.getSchema(`kubernetes#/definitions/${definition}`);
  if (valid === undefined) return [`no kind ${manifest.apiVersion}/${manifest.kind}`];
  if (valid(manifest)) return [];
  return (valid.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
};

test.each(files)('%s is as the API of Kubernetes describes it', (name) => {
  const documents = parseAllDocuments(read(name)).map((document) => document.toJS());
  expect(documents.flatMap(refusedBy)).toEqual([]);
});

test.each(workloads.map((one) => [one.metadata.name, one.spec.template.spec] as const))(
  '%s has no right that it does not need',
  (_name, pod) => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    });
    for (const { name, ...kinds } of pod.volumes) {
      const [kind = ''] = Object.keys(kinds);
      const allowed = {
        projected: { defaultMode: 0o440 },
        emptyDir: { medium: 'Memory' },
        configMap: {},
      };
      expect(kinds).toMatchObject({ [kind]: allowed[kind as keyof typeof allowed] });
    }
  },
);

/** Which keys each secret has, by the page. */
const PAGE = textOf('docs/kubernetes.md');
const secretsOfPage = new Map(
  [...PAGE.matchAll(/create secret generic (\S+) (.*)$/gm)].map(([, name = '', options = '']) => [
    name,
    [...options.matchAll(/--from-file=([^\s=]+)/g)].map(([, key = '']) => basename(key)),
  ]),
);

const VALUES: Record<string, string> = {
  'eventstoredb-url': 'esdb://payments:p@events.example:2113',
  'mongodb-url': 'mongodb://reader:p@models.example:27017/payments?tls=true',
  'stripe-key': 'rk_live_ofATrial',
  'stripe-webhook': 'whsec_b2ZBVHJpYWwtb2ZBVHJpYWw=',
  'sealing-key.pem': newSealingKey(),
};

const folder = folderOfTests();

/** The files that a process has mounted, of the secrets that its pod names. */
const mounted = (name: string, secrets: readonly string[]): string => {
  const path = join(folder, name);
  mkdirSync(path);
  for (const key of secrets.flatMap((secret) => secretsOfPage.get(secret) ?? [])) {
    writeFileSync(join(path, key), VALUES[key] ?? 's'.repeat(64));
    chmodSync(join(path, key), 0o400);
  }
  return path;
};

describe.each(processes.map((one) => [one.metadata.name, one] as const))('%s', (name, found) => {
  const { spec } = found.spec.template;
  const [process] = spec.containers;
  if (process === undefined) throw new Error('no container');

  test('starts on the settings and secrets that the manifests and the page give it', () => {
    const secrets = spec.volumes.flatMap(({ projected }) =>
      (projected?.sources ?? []).map(({ secret }) => secret.name),
    );
    const own = Object.fromEntries((process.env ?? []).map(({ name: key, value }) => [key, value]));
    const env = Object.entries({ ...parseEnv(read('settings.env')), ...own });
    const path = mounted(name, secrets);
    const given = env.map(([key, value]) => [key, value?.replace('/run/secrets/payments', path)]);
    const loaded = loadConfig(Object.fromEntries(given), name as Mode);
    expect(loaded).toMatchObject({ ok: true, config: { warnings: [] } });
    expect(own.PORT).toBe(String(process.ports[0]?.containerPort));
    expect(process.command).toEqual(['node', 'scripts/launch.cjs', `${name}/main.ts`]);
  });

  test('serves on until it is out of the endpoints, and then has its 10 s', () => {
    const [, wait] = process.lifecycle.preStop.exec.command;
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(wait) + 10);
    expect(process.livenessProbe.httpGet.path).toBe('/health/live');
    expect(process.readinessProbe.httpGet.path).toBe('/health/ready');
  });
});

test('only the command API has the key of the provider, and only the projector that of the seals', () => {
  const holders = (secret: string) =>
    workloads
      .filter(({ spec }) => JSON.stringify(spec.template.spec.volumes).includes(`"${secret}"`))
      .map(({ metadata }) => metadata.name);
  expect(holders('payments-provider')).toEqual(['command-api']);
  expect(holders('payments-sealing-key')).toEqual(['projector']);
  expect(holders('payments-write')).toEqual(['projector']);
  expect(holders('payments-commands')).toEqual(['command-api']);
});

test('of each there are two, one may be away, and a policy says who reaches it', () => {
  const own = workloads.map(({ metadata }) => metadata.name);
  expect(own.sort()).toEqual(['command-api', 'gateway', 'projector', 'query-api']);
  // The one that stands by starts while the other is not ready.
  const projector = workloads.find(({ metadata }) => metadata.name === 'projector');
  expect(projector?.spec.podManagementPolicy).toBe('Parallel');
  for (const { spec } of workloads) expect(spec.replicas).toBe(2);
  const namesOf = (kind: string) => ofKind(kind).map(({ metadata }) => metadata.name);
  expect(namesOf('PodDisruptionBudget').sort()).toEqual(own);
  expect(namesOf('Service').sort()).toEqual(own);
  expect(namesOf('NetworkPolicy').sort()).toEqual([...own, 'nothing-else', 'public-https'].sort());
});

test('443 is open to public addresses alone, so that a webhook reaches nothing in the cluster', () => {
  const open = parseAllDocuments(read('network.yaml'))
    .map((document) => document.toJS())
    .filter(({ spec }) => /"port":443\b/.test(JSON.stringify(spec.egress)));
  expect(open).toMatchObject([{ metadata: { name: 'public-https' } }]);
  const [{ to }] = open[0].spec.egress;
  expect(to[0].ipBlock.except).toEqual(
    expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16']),
  );
});

test('the gateway runs the image of the compose file', () => {
  const { services } = parse(textOf('docker-compose.yml'), { merge: true });
  const gateway = workloads.find(({ metadata }) => metadata.name === 'gateway');
  expect(gateway?.spec.template.spec.containers[0]?.image).toBe(services.gateway.image);
  expect(projectFiles).toContain('ops/Caddyfile');
});

const KUBECTL = spawnSync('kubectl', ['version', '--client']).status === 0;
const built = KUBECTL ? test : test.skip;
const why = KUBECTL ? '' : ' (skipped: no kubectl is installed)';

built(`kustomize builds all of it into one namespace${why}`, () => {
  const { status, stdout } = spawnSync('kubectl', ['kustomize', FOLDER], { encoding: 'utf8' });
  expect(status).toBe(0);
  const all = parseAllDocuments(stdout).map((document) => document.toJS());
  expect(all).toHaveLength(manifests.length + 1);
  expect(all.filter(({ kind }) => kind !== 'ConfigMap').flatMap(refusedBy)).toEqual([]);
  const inside = all.filter(({ kind }) => kind !== 'Namespace');
  expect(new Set(inside.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['payments']));
});
