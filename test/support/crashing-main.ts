/** The embedded service that dies at the point of the environment's `CRASH_AT`. */

import { openService } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import { runProcess } from '../../shared/runtime/process-life.ts';
import { type CrashPoint, dyingAt } from './crash-points.ts';

await runProcess({
  mode: 'embedded',
  operatorErrors: [],
  prepare: ({ dataDir }) => openDataFolder(dataDir),
  open: ({ config, log, prepared, onFatal }) =>
    openService(config, prepared, log, onFatal, dyingAt(process.env.CRASH_AT as CrashPoint)),
  banner: () => '',
  farewell: 'not at a point',
});
