/**
 * The service in this process, at an address of its own: for tests of its responses, and of commands
 * beside it.
 */
import { openService, type Wrappers } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { freePort } from './free-port.ts';
import { clientOf, isReady, type ServiceOptions } from './service.ts';
import { silentLog } from './silent-log.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { PATIENT } from './time-bounds.ts';
import { until } from './until.ts';

export type ServiceHere = Awaited<ReturnType<typeof startServiceHere>>;

/** Opens it with the settings of `env` and waits until it is ready. It logs nothing. */
export const startServiceHere = async ({
  env,
  dataDir: given,
  wrappers,
}: Pick<ServiceOptions, 'env' | 'dataDir'> & {
  wrappers?: Wrappers;
} = {}) => {
  const { path: dataDir, remove } =
    given === undefined ? temporaryFolder() : { path: given, remove: () => undefined };
  const PORT = env?.PORT ?? String(await freePort());
  const read = loadConfig({ ...PATIENT, ...env, DATA_DIR: dataDir, PORT });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const { host, port } = read.config;
  const fatal = (error: Error) => {
    throw error;
  };
  const folder = openDataFolder(dataDir);
  const opened = await openService(read.config, folder, silentLog, fatal, wrappers);
  await opened.app.listen({ host, port });
  let stopped: Promise<void> | undefined;
  const at = { url: `http://127.0.0.1:${port}`, port, dataDir };
  await until('the service is ready', () => isReady(at.url));
  return {
    ...at,
    ...clientOf(at, env),
    /** Stops the service in good order, once, and removes the data folder, unless it is the caller's. */
    [Symbol.asyncDispose]: async (): Promise<void> => {
      stopped ??= opened.stop();
      await stopped;
      remove();
    },
  };
};
