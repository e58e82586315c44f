/** The errors of the relay. Those of its engines are in the errors.ts of their ports. */

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
