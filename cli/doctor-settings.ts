/** What `payments doctor` reports about the settings: value and origin of each, secrets hidden. */
import { type Config, loadConfig } from '../shared/runtime/config.ts';
import { SECRET_SETTINGS, settingsTable } from '../shared/runtime/settings.ts';

/** One setting; the value of a secret is hidden. */
export type SettingFinding = {
  name: string;
  value: string;
  origin: 'environment' | 'file' | 'default';
};

/** Settings of the command line alone: they are not in the table of the service's settings. */
const CLIENT_SETTINGS = [
  { name: 'PAYMENTS_URL', default: 'HOST and PORT' },
  { name: 'PAYMENTS_TOKEN', default: 'made with JWT_SECRET or the key in DATA_DIR' },
];

const CREDENTIALS = /^([a-z+]+:\/\/)[^/?#]*@/i;
const SECRET_PARAMETER = /([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*/gi;
const ADDRESSES = [
  'EVENTSTOREDB_URL',
  'MONGODB_URL',
  'PROVIDER_URL',
  'PAYMENTS_URL',
  'JWT_JWKS_URL',
];

/** An address without the user, password and secret parameters in it. */
export const withoutSecrets = (address: string): string =>
  address.replace(CREDENTIALS, '$1***@').replace(SECRET_PARAMETER, '$1***');

const SECRETS = [...SECRET_SETTINGS, 'PAYMENTS_TOKEN'];

const shown = (name: string, value: string): string => {
  if (ADDRESSES.includes(name)) return withoutSecrets(value);
  return SECRETS.includes(name) ? `hidden (${Buffer.byteLength(value)} bytes)` : value;
};

const settingFinding = (
  env: NodeJS.ProcessEnv,
  { name, default: byDefault }: { name: string; default: string },
): SettingFinding => {
  const value = env[name]?.trim() ?? '';
  if (value !== '') return { name, value: shown(name, value), origin: 'environment' };
  const file = SECRETS.includes(name) ? (env[`${name}_FILE`]?.trim() ?? '') : '';
  if (file !== '') return { name, value: `hidden (in ${file})`, origin: 'file' };
  return { name, value: byDefault, origin: 'default' };
};

/** All settings and their problems, one line each; `config` is undefined where there is a problem. */
export const lookAtSettings = (
  env: NodeJS.ProcessEnv,
): { settings: SettingFinding[]; problems: string[]; config: Config | undefined } => {
  const settings = [...settingsTable, ...CLIENT_SETTINGS].map((row) => settingFinding(env, row));
  const read = loadConfig(env);
  return read.ok
    ? { settings, problems: [], config: read.config }
    : { settings, problems: read.problems, config: undefined };
};
