/** The embedded service that dies at the point of the environment's `CRASH_AT`. */
import { openDataFolder } from '../../embedded/data-folder.ts';
import { openService } from '../../embedded/service.ts';
import { runProcess } from '../../shared/http/process.ts';
import { type CrashPoint, dyingAt } from './crash-points.ts';

await runProcess({
  mode: 'embedded',
  refusals: [],
  prepare: ({ dataDir }) => openDataFolder(dataDir),
  open: ({ config, log, prepared, onFatal }) =>
    openService(config, prepared, log, onFatal, dyingAt(process.env.CRASH_AT as CrashPoint)),
  banner: () => '',
  farewell: 'not at a point',
});
