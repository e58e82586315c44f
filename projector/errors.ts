/** The errors of the projector and the relay. Those of their engines stand with their ports. */

/** Another projector follows the log: only that projector can carry out the request. Nothing was done. */
export class StandingBy extends Error {
  readonly code = 'STANDING_BY';
  override name = 'StandingBy';
}

/**
 * The log is not the one that the read models were filled from. Nothing was applied, and a new attempt
 * does not help: an operator has to put the right log back. `message` is one line.
 */
export class LogMisfit extends Error {
  readonly code = 'LOG_MISFIT';
  override name = 'LogMisfit';
}

/**
 * The log ends before the checkpoint of the served read models, so new ones cannot reach it. The old
 * ones are still served. `message` is one line.
 */
export class RebuildImpossible extends Error {
  readonly code = 'REBUILD_IMPOSSIBLE';
  override name = 'RebuildImpossible';
}

/** The read models are being compared with the log already; this call began no comparison. */
export class ComparisonRunning extends Error {
  readonly code = 'COMPARISON_RUNNING';
  override name = 'ComparisonRunning';
}

/**
 * The relay cannot go on, and a new attempt does not help: an operator has to act. Nothing more is
 * sent. `message` is one line that says what to do.
 */
export class RelayHalted extends Error {
  readonly code = 'RELAY_HALTED';
  override name = 'RelayHalted';
}

/**
 * The relay of this process cannot try parked payments now. `message` says why, and whether it tries
 * them by itself. Where messages had left, the relay goes on with them by itself.
 */
export class RelayNotReady extends Error {
  readonly code = 'RELAY_NOT_READY';
  override name = 'RelayNotReady';
}
