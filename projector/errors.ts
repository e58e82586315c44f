/** The projector's own errors. What its engines throw is in the errors.ts of their ports. */

/** Another projector follows the log, so the request is that one's to carry out. Nothing was done. */
export class StandingBy extends Error {
  readonly code = 'STANDING_BY';
  override name = 'StandingBy';
}

/**
 * The log is not the one that the read models were filled from. Nothing was applied, and trying
 * again does not help: a person puts the right log back. `message` is one line.
 */
export class LogMisfit extends Error {
  readonly code = 'LOG_MISFIT';
  override name = 'LogMisfit';
}

/**
 * The log ends before the place where the served read models are, so new ones cannot be filled up
 * to it. The old ones are still served. `message` is one line.
 */
export class RebuildImpossible extends Error {
  readonly code = 'REBUILD_IMPOSSIBLE';
  override name = 'RebuildImpossible';
}

/** The errors with which the projector turns down a request or its own start. */
export type ProjectorError = StandingBy | LogMisfit | RebuildImpossible;
