/** Every driver throws these alone. Code branches on the class or on a `code`, never on `message`. */
import { onError } from '../runtime/error-text.ts';

/** Out of reach or closed. A write may have stored documents, not its checkpoint: its repeat is harmless. */
export class ReadModelsUnavailable extends Error {
  readonly code = 'READ_MODELS_UNAVAILABLE';
  override name = 'ReadModelsUnavailable';
}

/** The file is damaged or gone. It is served on as far as it can be read, until a rebuild or a start. */
export class ReadModelsLost extends ReadModelsUnavailable {
  override name = 'ReadModelsLost';
}

/** For `catch`: undefined for read models that cannot say anything any more. */
export const unlessLost = onError(ReadModelsLost, () => undefined);

/** Another projector moved it, or serves another generation. This batch did not: read it, then go on there. */
export class CheckpointMoved extends Error {
  override name = 'CheckpointMoved';
}

/** Nothing of its batch was written. */
export class DocumentTooLarge extends Error {
  override name = 'DocumentTooLarge';
  readonly paymentId: string;
  constructor(paymentId: string, bytes: number) {
    super(`its document of ${bytes} bytes is larger than the store takes`);
    this.paymentId = paymentId;
  }
}

/** This call began no rebuild. */
export class RebuildRunning extends Error {
  readonly code = 'REBUILD_RUNNING';
  override name = 'RebuildRunning';
}
