/** The embedded service that dies at the point of the environment's `CRASH_AT`. */
import { openService } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import type { Provider } from '../../providers/port.ts';
import { runProcess } from '../../shared/runtime/process-life.ts';
import { type CrashPoint, dyingAt } from './crash-points.ts';
import { providerFaults } from './faults-on-demand.ts';
import { opening } from './opening-provider.ts';

/** `LOOK_UPS=none`: the provider answers no question. */
const faults = providerFaults();
faults.respondsToLookUps = process.env.LOOK_UPS !== 'none';
/** `CRASH_ARMED=later`: SIGUSR2 arms it, so that the process can be made use of before. */
let isArmed = process.env.CRASH_ARMED !== 'later';
process.on('SIGUSR2', () => {
  isArmed = true;
  process.stderr.write('armed\n');
});
const dying = dyingAt(process.env.CRASH_AT as CrashPoint, () => isArmed);
/** `OPENS=first`: the provider opens something before it moves money. */
const ownOf = (own: Provider): Provider =>
  process.env.OPENS === 'first' ? opening(dying.confirming(own)) : own;
const wrappers = { ...dying, provider: (own: Provider) => faults.wrap(dying.provider(ownOf(own))) };

await runProcess({
  mode: 'embedded',
  operatorErrors: [],
  prepare: ({ dataDir }) => openDataFolder(dataDir),
  open: ({ config, log, prepared, onFatal }) =>
    openService(config, prepared, log, onFatal, wrappers),
  banner: () => '',
  farewell: 'not at a point',
});
