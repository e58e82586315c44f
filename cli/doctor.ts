/** `payments doctor`: settings, engines and folder of the running service, else of this shell. */
import type { Command } from 'commander';
import type { Config, EffectiveSetting } from '../shared/runtime/config.ts';
import { VERSION } from '../shared/runtime/version.ts';
import { attentionLines, needAPerson } from './attention.ts';
import {
  type EngineFinding,
  type EventStoreServerFinding,
  lookAtEngines,
  lookAtEventStoreServer,
  serverRows,
} from './doctor-engines.ts';
import { missingOf, showProduction, walkProduction } from './doctor-production.ts';
import {
  type Attention,
  type DataFolderFinding,
  lookAtDataFolder,
  lookAtService,
  lookAtSettings,
  lookForAttention,
  type ServiceFinding,
} from './doctor-service.ts';
import { formatted, type Given } from './options.ts';
import { CommandFailed, columns, note, print, printJson, styled, textsIn } from './output.ts';

/** `problems` are of this shell's settings: one is enough to keep a process from starting. */
type Finding = Awaited<ReturnType<typeof examine>>;

const isHere = ({ url }: ServiceFinding): boolean =>
  ['localhost', '127.0.0.1', '[::1]'].includes(new URL(url).hostname);

const differing = (shell: readonly EffectiveSetting[], service: ServiceFinding): string[] => {
  const there = new Map(service.settings?.settings.map(({ name, value }) => [name, value]));
  return shell
    .filter(({ origin }) => origin !== 'default')
    .filter(({ name, value }) => there.has(name) && there.get(name) !== value)
    .map(({ name }) => name);
};

const folderOf = (config: Config, service: ServiceFinding): DataFolderFinding | null => {
  if (!isHere(service)) return null;
  const { settings } = service;
  if (settings !== null && settings.mode !== 'embedded') return null;
  return lookAtDataFolder(settings?.dataFolder ?? config.dataDir);
};

/** The service runs on a server whose address this shell does not have: the service hides its password. */
const isServerUnknown = ({ eventStoreDbUrl }: Config, { settings }: ServiceFinding): boolean => {
  const there = settings?.settings.find(({ name }) => name === 'EVENTSTOREDB_URL');
  return eventStoreDbUrl === undefined && there?.value.includes('://') === true;
};

const SERVER_UNKNOWN =
  'EventStoreDB: version, leader and rights, for EVENTSTOREDB_URL is not set in this shell and the service runs on it';

const FOLDER_ELSEWHERE = 'the data folder: ask on its machine, without PAYMENTS_URL';
const OTHERS_OF_A_KIND = 'the other processes of each kind; alerts read /metrics of all';
const NO_FAULT = [SERVER_UNKNOWN, FOLDER_ELSEWHERE, OTHERS_OF_A_KIND];

const notLookedAt = (config: Config, service: ServiceFinding, { unknown }: Attention): string[] => [
  ...(isServerUnknown(config, service) ? [SERVER_UNKNOWN] : []),
  ...(service.settings?.mode === 'embedded' && !isHere(service) ? [FOLDER_ELSEWHERE] : []),
  ...(service.settings?.mode === 'command-api' ? [OTHERS_OF_A_KIND] : []),
  ...(unknown ? [`what needs a person: ${unknown}`] : []),
];

/** Where no process starts with the settings of this shell. */
const NOTHING = {
  warnings: [],
  service: null,
  version: VERSION,
  shellDiffers: [],
  dataFolder: null,
  engines: [],
  eventStoreServer: null,
  notLookedAt: [],
  attention: [],
  troubles: [],
  production: undefined,
};

const examine = async (isProduction: boolean) => {
  const { settings: shell, problems, config } = lookAtSettings(process.env);
  if (config === undefined)
    return { problems, settingsOf: 'shell' as const, settings: shell, ...NOTHING };
  const service = await lookAtService(config);
  const { url, state, reason, settings } = service;
  const { eventStoreDbUrl } = config;
  const engines = state === 'stopped' ? await lookAtEngines(config) : service.engines;
  const dataFolder = folderOf(config, service);
  const isUp = engines.some((one) => one.engine === 'event store' && one.state === 'up');
  const eventStoreServer =
    eventStoreDbUrl !== undefined && isUp ? await lookAtEventStoreServer(eventStoreDbUrl) : null;
  const attention = settings === null ? { items: [] } : await lookForAttention();
  return {
    problems,
    troubles: settings?.troubles ?? [],
    warnings: settings?.warnings ?? config.warnings,
    service: { url, state, ...(reason === undefined ? {} : { reason }) },
    version: settings?.version ?? VERSION,
    settingsOf: settings === null ? ('shell' as const) : ('service' as const),
    settings: settings?.settings ?? shell,
    shellDiffers: differing(shell, service),
    dataFolder,
    engines,
    eventStoreServer,
    notLookedAt: notLookedAt(config, service, attention),
    attention: attention.items,
    ...(isProduction &&
      settings !== null && { production: await walkProduction(url, settings.settings) }),
  };
};

const title = (text: string): void => print('', styled('bold', text));

const sizeOf = (bytes: number): string => {
  if (bytes < 1e3) return `${bytes} bytes`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
};

const showDataFolder = (finding: DataFolderFinding): void => {
  const { path, state, held, freeBytes, files, lastBackupAt } = finding;
  title('Data folder');
  const free = freeBytes === null ? '' : `, ${sizeOf(freeBytes)} free`;
  print(`${path}  ${state}${held ? ', held by a running service' : ''}${free}`);
  print(`  last backup: ${lastBackupAt ?? 'none'}`);
  print(...columns(files.map(({ name, bytes }) => [`  ${name}`, sizeOf(bytes)])));
  for (const line of [...finding.waysBackLost, ...finding.keysUnsaved])
    print(styled('yellow', `  warning: ${line}`));
};

const showEngines = (engines: readonly EngineFinding[]): void => {
  title('Engines');
  const mark = ({ fault, state }: EngineFinding): string =>
    styled(fault ? 'red' : state === 'up' ? 'green' : 'dim', state);
  print(...columns(engines.map((one) => [one.engine, one.place, mark(one)])));
  for (const { engine, cause } of engines) if (cause !== undefined) print(`  ${engine}: ${cause}`);
};

const showServer = (finding: EventStoreServerFinding): void => {
  title('EventStoreDB');
  print(...columns(serverRows(finding)));
  for (const warning of finding.warnings) print(styled('yellow', `  warning: ${warning}`));
};

const showService = ({ service, settingsOf, version }: Finding): void => {
  if (service === null) return;
  const { url, state, reason } = service;
  const shown = styled(state === 'running' ? 'green' : 'red', state);
  print(`${styled('bold', 'Service')}  ${url}  ${shown}`, `  payments ${version}`);
  if (reason !== undefined) print(`  its settings are not known: ${reason}`);
  title(settingsOf === 'service' ? 'Settings in effect there' : 'Settings of this shell');
};

const show = (finding: Finding): void => {
  const { settings, shellDiffers, dataFolder, engines, eventStoreServer } = finding;
  showService(finding);
  print(...columns(settings.map(({ name, value, origin }) => [name, value, origin])));
  if (shellDiffers.length > 0) print(`this shell has other values of: ${shellDiffers.join(', ')}`);
  for (const problem of [...finding.problems, ...finding.troubles])
    print(styled('red', `problem: ${problem}`));
  for (const warning of finding.warnings) print(styled('yellow', `warning: ${warning}`));
  if (dataFolder !== null) showDataFolder(dataFolder);
  if (engines.length > 0) showEngines(engines);
  if (eventStoreServer !== null) showServer(eventStoreServer);
  if (finding.production !== undefined) showProduction(finding.production);
  for (const part of finding.notLookedAt) print('', styled('yellow', `not looked at: ${part}`));
  if (finding.attention.length > 0) {
    title('Needs a person');
    print(...attentionLines(finding.attention));
  }
};

/** Each is a line on stderr; with any of them the exit code is 1. */
const failures = (finding: Finding): string[] => {
  const { problems, service, dataFolder, engines, eventStoreServer } = finding;
  if (problems.length > 0)
    return ['no process starts with these settings; docs/settings.md describes each'];
  const faults = engines.filter(({ fault }) => fault).map(({ engine }) => engine);
  return textsIn([
    service?.state === 'stopped' &&
      (dataFolder?.held === true
        ? `no service answers at ${service.url}, and one holds the data folder: are HOST and PORT here its own?`
        : `the service is stopped: nothing answers at ${service.url}; start it with npm start, or set PAYMENTS_URL`),
    service?.state === 'not ready' && 'the service is not ready',
    service?.reason !== undefined && 'the settings in effect could not be read',
    faults.length > 0 &&
      `${faults.join(', ')} cannot be used; the causes are above, and "Health" in docs/operations.md says what to do`,
    ...(eventStoreServer?.faults ?? []).map((fault) => `event store: ${fault}`),
    dataFolder?.problem,
    ...finding.troubles,
    ...finding.notLookedAt.filter((part) => !NO_FAULT.includes(part)),
    ...missingOf(finding.production ?? []),
    ...(finding.production && eventStoreServer
      ? eventStoreServer.warnings.map((line) => `not ready for production: EventStoreDB: ${line}`)
      : []),
  ]);
};

const doctor = async ({ format, production }: Given<never, 'production'>): Promise<void> => {
  const finding = await examine(production === true);
  const failed = failures(finding);
  const ok = failed.length === 0;
  if (format === 'json') printJson({ ok, ...finding });
  else show(finding);
  const { attention } = finding;
  const lines = [...failed, ...(attention.length > 0 ? [needAPerson(attention)] : [])];
  if (lines.length > 0) throw new CommandFailed(lines.join('\npayments: '), ok ? 3 : 1);
  if (format === 'pretty')
    note('', 'Nothing is wrong. Next: payments projections status says how far read models are');
};

export const doctorCommand = (): Command =>
  formatted('doctor', 'payments doctor', 'payments doctor --production')
    .description(
      'Asks the running service for its settings in effect, each with its origin, and for its engines.',
    )
    .option('--production', 'also walk docs/production.md, and name what is missing')
    .action(doctor);
