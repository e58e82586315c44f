/**
 * `npm run test:mutation [-- --mutate 'shared/payment/**' and Stryker's other flags]`: the tests of a folder
 * have to notice each small change by Stryker. Without `--mutate` every folder in turn: many hours the first
 * time, later only the changed parts (reports/mutation/); `--force` repeats all. Ends with 1 when a score is
 * below the minimum of stryker.config.mjs.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const STRYKER = join(ROOT, 'node_modules/@stryker-mutator/core/bin/stryker.js');

/** The closest and quickest test files of each folder: a change that no test notices runs all of them. */
const TESTS_OF: Readonly<Record<string, string>> = {
  'shared/payment': 'domain/*',
  'shared/event-store': 'domain/*',
  'command-api':
    'http/{create-payment,capture-void-refund,idempotency,unique-references,stripe-webhooks} memory/payment-log',
  'command-api/endpoints': 'webhooks/endpoints',
  'command-api/operator': 'recovery/resolve',
  'command-api/attention': 'http/attention',
  'command-api/provider': 'contract/provider/{resilience,simulator}',
  'command-api/provider/http': 'contract/provider/http-faults',
  'command-api/provider-ahead': 'provider-ahead/provider-ahead',
  'command-api/reconcile': 'audit/{reconcile,reconcile-schedule,reconcile-stream}',
  'command-api/recovery': 'recovery/* http/{restored-never-sent,unique-references,later-results}',
  'command-api/request': 'http/{create-request,change-request,card-in-request}',
  projector: 'projector/{projection,subscription,lease,rebuild,removed}',
  'projector/deliverer': 'webhooks/{delivery,deliverer,messages,addresses}',
  'projector/event-feed': 'projector/topics contract/event-feed/memory',
  'projector/relay': 'projector/{relay,relay-parking} contract/relay-retry/memory',
  'projector/seals': 'projector/{seals,sealing-key,running-hash}',
  'projector/verification': 'projector/verification',
};
const FOLDERS = Object.keys(TESTS_OF);
/** Schemas, which frozen files hold, metrics, and mains. */
const NOT_CHANGED = ['*events', 'payment/fields', 'contract', 'schemas', '*metrics', 'main'];
/** The pure files of the event store. */
const EVENT_STORE = ['chain', 'codec', 'fold-stream', 'verify-chain'];

const isIn = (path: string, folder: string): boolean => `${path}/`.startsWith(`${folder}/`);

const runsOf = (wanted: string): [folder: string, files: string][] => {
  const fixed = wanted.replace(/\/?\*.*/, '');
  const inside = FOLDERS.filter((folder) => isIn(folder, fixed));
  const files = (folder: string) =>
    folder === 'shared/event-store'
      ? EVENT_STORE.map((name) => `${folder}/${name}.ts`).join(',')
      : `${folder}/*.ts`;
  if (inside.length > 0) return inside.map((folder) => [folder, files(folder)]);
  const around = FOLDERS.filter((folder) => isIn(fixed, folder)).sort();
  return around.slice(-1).map((folder) => [folder, wanted]);
};

const run = ([folder, files]: [string, string], flags: readonly string[]): number => {
  const name = folder.replaceAll('/', '-');
  const args = ['--mutate', [files, ...NOT_CHANGED.map((one) => `!**/${one}.ts`)].join(',')];
  const kept = ['--incrementalFile', `reports/mutation/${name}.json`];
  process.stderr.write(`mutation: ${files}, by the tests ${TESTS_OF[folder]}\n`);
  const { status } = spawnSync(process.execPath, [STRYKER, 'run', ...args, ...kept, ...flags], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, MUTATION_TESTS: TESTS_OF[folder] },
  });
  return status ?? 1;
};

const flags = process.argv.slice(2);
const at = flags.indexOf('--mutate');
const runs = at === -1 ? runsOf('*') : runsOf(flags.splice(at, 2)[1] ?? '');
if (runs.length === 0) process.stderr.write(`mutation: one of ${FOLDERS.join(', ')}\n`);
const worst = Math.max(...runs.map((one) => run(one, flags)));
process.exitCode = runs.length === 0 ? 2 : worst;
