/**
 * `payments doctor`: every setting with its origin, the data folder, and whether each engine can be
 * used, with the likely cause where one cannot. It changes nothing and needs no running service.
 */
import { Command } from 'commander';
import { CommandFailed } from './command-failed.ts';
import { type DataFolderFinding, lookAtDataFolder } from './doctor-data.ts';
import { type EngineFinding, lookAtEngines } from './doctor-engines.ts';
import { lookAtSettings, type SettingFinding } from './doctor-settings.ts';
import { columns, type Format, formatOption, note, print, printJson, styled } from './output.ts';

type Finding = {
  ok: boolean;
  /** Problems of the settings, one line each; with any of them no process starts. */
  problems: string[];
  warnings: readonly string[];
  settings: SettingFinding[];
  dataFolder: DataFolderFinding | null;
  engines: EngineFinding[];
};

const examine = async (): Promise<Finding> => {
  const { settings, problems, config } = lookAtSettings(process.env);
  if (config === undefined) {
    return { ok: false, problems, warnings: [], settings, dataFolder: null, engines: [] };
  }
  const dataFolder = lookAtDataFolder(config.dataDir);
  const engines = await lookAtEngines(config, dataFolder);
  const ok = dataFolder.problem === undefined && engines.every(({ fault }) => !fault);
  return { ok, problems, warnings: config.warnings, settings, dataFolder, engines };
};

const title = (text: string): void => print('', styled('bold', text));

const sizeOf = (bytes: number): string => {
  if (bytes < 1e3) return `${bytes} bytes`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
};

const showDataFolder = ({ path, state, held, freeBytes, files }: DataFolderFinding): void => {
  title('Data folder');
  const free = freeBytes === null ? '' : `, ${sizeOf(freeBytes)} free`;
  print(`${path}  ${state}${held ? ', held by a running service' : ''}${free}`);
  print(...columns(files.map(({ name, bytes }) => [`  ${name}`, sizeOf(bytes)])));
};

const showEngines = (engines: readonly EngineFinding[]): void => {
  title('Engines');
  const mark = ({ fault, state }: EngineFinding): string =>
    styled(fault ? 'red' : state === 'up' ? 'green' : 'dim', state);
  print(...columns(engines.map((one) => [one.engine, one.place, mark(one)])));
  for (const { engine, cause } of engines) if (cause !== undefined) print(`  ${engine}: ${cause}`);
};

const show = ({ settings, problems, warnings, dataFolder, engines }: Finding): void => {
  print(styled('bold', 'Settings'));
  print(...columns(settings.map(({ name, value, origin }) => [name, value, origin])));
  for (const problem of problems) print(styled('red', `problem: ${problem}`));
  for (const warning of warnings) print(styled('yellow', `warning: ${warning}`));
  if (dataFolder !== null) showDataFolder(dataFolder);
  if (engines.length > 0) showEngines(engines);
};

const failure = ({ problems, dataFolder, engines }: Finding): string => {
  if (problems.length > 0)
    return 'no process starts with these settings; docs/settings.md describes each';
  const faults = engines.filter(({ fault }) => fault).map(({ engine }) => engine);
  if (faults.length === 0) return `${dataFolder?.problem}`;
  return `${faults.join(', ')} cannot be used; the causes are above, and docs/operations.md says what to do`;
};

const doctor = async ({ format }: { format: Format }): Promise<void> => {
  const finding = await examine();
  if (format === 'json') printJson(finding);
  else show(finding);
  if (!finding.ok) throw new CommandFailed(failure(finding));
  if (format === 'pretty')
    note(
      '',
      'Nothing is wrong. Next: payments projections status shows how far the read models are',
    );
};

/** The verb `doctor`. */
export const doctorCommand = (): Command =>
  new Command('doctor')
    .description(
      'Checks every setting with its origin, the data folder, and whether each engine can be used.',
    )
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  payments doctor')
    .action(doctor);
