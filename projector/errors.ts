/** Only the projector that follows the log can carry out the request. Nothing was done. */
export class StandingBy extends Error {
  readonly code = 'STANDING_BY';
  override name = 'StandingBy';
}

/** An operator has to put back the log that was applied and sealed. `message` is one line. */
export class LogMisfit extends Error {
  readonly code = 'LOG_MISFIT';
  override name = 'LogMisfit';
}

/** The log lacks events that the read models have applied, or has others in their place. */
export class AppliedLogMisfit extends LogMisfit {
  override name = 'AppliedLogMisfit';
}

/** A file of the seals; `message` begins with the setting that names another one. */
export class SealFileRefused extends LogMisfit {
  override name = 'SealFileRefused';
}

/** The log ends before the checkpoint of the served read models, so new ones cannot reach it. */
export class RebuildImpossible extends Error {
  readonly code = 'REBUILD_IMPOSSIBLE';
  override name = 'RebuildImpossible';
}

/** This call began no comparison. */
export class ComparisonRunning extends Error {
  readonly code = 'COMPARISON_RUNNING';
  override name = 'ComparisonRunning';
}

/** The relay sends nothing more until an operator acts. `message` is one line that says what to do. */
export class RelayHalted extends Error {
  readonly code = 'RELAY_HALTED';
  override name = 'RelayHalted';
}

/** No broker is set, so the relay sends nothing and has parked nothing. */
export class RelayOff extends Error {
  override name = 'RelayOff';
}

/** The relay of this process cannot try parked payments now; `message` says why. */
export class RelayNotReady extends Error {
  readonly code = 'RELAY_NOT_READY';
  override name = 'RelayNotReady';
}
