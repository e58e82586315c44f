/** The relay sends nothing more until an operator acts. `message` is one line that says what to do. */
export class RelayHalted extends Error {
  override name = 'RelayHalted';
}

/** No broker is set, so the relay sends nothing and has parked nothing. */
export class RelayOff extends Error {
  readonly code = 'RELAY_OFF';
  override name = 'RelayOff';
}

/** The relay of this process cannot try parked payments now; `message` says why. */
export class RelayNotReady extends Error {
  readonly code = 'RELAY_NOT_READY';
  override name = 'RelayNotReady';
}
