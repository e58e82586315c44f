/** What `payments doctor` reports about the settings of this shell: value and origin, secrets hidden. */
import type { Config, EffectiveSetting } from '../shared/runtime/config.ts';
import { shownSetting } from '../shared/runtime/effective-settings.ts';
import { loadConfig } from '../shared/runtime/load-config.ts';
import { SECRET_SETTINGS, settingsTable } from '../shared/runtime/settings.ts';

/** Those of this shell that are set, where no process would start with them. */
const givenSettings = (env: NodeJS.ProcessEnv): EffectiveSetting[] =>
  settingsTable.flatMap(({ name }) => {
    const value = env[name]?.trim() ?? '';
    if (value === '') return [];
    const shown = shownSetting(name, value, SECRET_SETTINGS.includes(name));
    return [{ name, value: shown, origin: 'environment' as const }];
  });

/** All settings and their problems, one line each; `config` is undefined where there is a problem. */
export const lookAtSettings = (
  env: NodeJS.ProcessEnv,
): { settings: EffectiveSetting[]; problems: string[]; config: Config | undefined } => {
  const read = loadConfig(env);
  return read.ok
    ? { settings: [...read.config.effective], problems: [], config: read.config }
    : { settings: givenSettings(env), problems: read.problems, config: undefined };
};
