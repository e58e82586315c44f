/** What `payments doctor` reports about the settings: value and origin of each, secrets hidden. */
import { type Config, loadConfig } from '../shared/runtime/config.ts';
import { settingsTable } from '../shared/runtime/settings.ts';

/** One setting; the value of a secret is hidden. */
export type SettingFinding = { name: string; value: string; origin: 'environment' | 'default' };

const SECRETS = new Set(['JWT_SECRET', 'IDEMPOTENCY_SECRET', 'PROVIDER_TOKEN', 'PAYMENTS_TOKEN']);
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

const shown = (name: string, value: string): string => {
  if (SECRETS.has(name)) return `hidden (${Buffer.byteLength(value)} bytes)`;
  return ADDRESSES.includes(name) ? withoutSecrets(value) : value;
};

/** All settings and their problems, one line each; `config` is undefined where there is a problem. */
export const lookAtSettings = (
  env: NodeJS.ProcessEnv,
): { settings: SettingFinding[]; problems: string[]; config: Config | undefined } => {
  const settings = [...settingsTable, ...CLIENT_SETTINGS].map(
    ({ name, default: byDefault }): SettingFinding => {
      const value = env[name]?.trim() ?? '';
      return value === ''
        ? { name, value: byDefault, origin: 'default' }
        : { name, value: shown(name, value), origin: 'environment' };
    },
  );
  const read = loadConfig(env);
  return read.ok
    ? { settings, problems: [], config: read.config }
    : { settings, problems: read.problems, config: undefined };
};
