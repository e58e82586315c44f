/**
 * `npm run test:mutation [-- --mutate 'shared/payment/**' and Stryker's flags]`: a folder's tests must notice
 * each small change by Stryker. Without `--mutate` every folder: hours the first time, later only changed parts
 * (reports/mutation/); `--force` repeats all. Ends with 1 below the minimum of stryker.config.mjs.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const STRYKER = join(ROOT, 'node_modules/@stryker-mutator/core/bin/stryker.js');

/** The closest and quickest test files of each folder: a change that no test notices runs all of them. */
const TESTS_OF: Readonly<Record<string, string>> = {
  'shared/payment': 'payment/*',
  'shared/event-store': 'event-store/{chain,codec}',
  'command-api':
    'command-api/{create-payment,capture-void-refund,idempotency,unique-references,payment-log} providers/stripe-webhooks',
  'command-api/back-office/attention': 'command-api/attention',
  'command-api/back-office/by-hand': 'command-api/resolve',
  'command-api/back-office/provider-ahead': 'command-api/provider-ahead',
  'command-api/back-office/reconcile':
    'command-api/{reconcile,reconcile-schedule,reconcile-stream}',
  'command-api/recovery':
    'command-api/{recovery*,authorizations,confirm,opened,resolve,retry-schedule,unknown-outcomes,untold,unique-references,later-results} restore/restored-log',
  'command-api/request': 'command-api/{create-request,change-request,card-in-request}',
  providers: 'providers/{resilience,simulator.contract}',
  'providers/http': 'providers/http-faults',
  projector: 'projector/{projection,rebuild,removed}',
  'shared/subscription': 'subscription/*',
  'webhooks/delivery': 'webhooks/{delivery,deliverer,messages}',
  'webhooks/endpoints': 'webhooks/{endpoints,addresses}',
  topics: 'topics/{topics,relay,relay-parking,memory.contract,relay-retry-memory.contract}',
  'audit/seals': 'audit/{seals,running-hash,verify-seals}',
  audit: 'audit/{verification,routes,tampering-table}',
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
