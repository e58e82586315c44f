/** Only the projector that follows the log can carry out the request. Nothing was done. */
export class StandingBy extends Error {
  readonly code = 'STANDING_BY';
  override name = 'StandingBy';
}

/** An operator has to put back the log that was applied and sealed. `message` is one line. */
export class LogMisfit extends Error {
  override name = 'LogMisfit';
}

/** The log lacks events that the read models have applied, or has others in their place. */
export class AppliedLogMisfit extends LogMisfit {
  override name = 'AppliedLogMisfit';
}
