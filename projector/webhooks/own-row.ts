/** The row of an endpoint as one deliverer has taken it: a save fails once another one has saved. */
import {
  type Attempt,
  type DeliveryRow,
  newDeliveryRow,
  parseDeliveryRow,
} from '../../shared/webhooks/delivery-row.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import type { Endpoint } from '../../shared/webhooks/endpoints.ts';

/** Another process has moved the row: it delivers now. */
class Overtaken extends Error {
  override name = 'Overtaken';
}

export type OwnRow = {
  /** The last row taken or saved. */
  value(): DeliveryRow;
  /** Throws Overtaken, and what the store throws. */
  save(row: DeliveryRow, attempts: readonly Attempt[]): Promise<void>;
  /** Whether an error of `save` is about the store, so that the same save can be tried again. */
  isOutOfReach(error: unknown): boolean;
};

/**
 * Reads the row of an endpoint, or makes its first one, and saves it once: from then on every older
 * deliverer fails to save. `commands` is the revision of the event that created the endpoint.
 */
export const takeRow = async (
  store: Pick<DeliveryStore, 'load' | 'save'>,
  { endpointId, after }: Endpoint,
  commands: number,
): Promise<OwnRow> => {
  const stored = await store.load(endpointId);
  let version = stored?.version ?? 0;
  let row = stored === undefined ? newDeliveryRow(after, commands) : parseDeliveryRow(stored.text);

  const save: OwnRow['save'] = async (next, attempts) => {
    if (!(await store.save(endpointId, JSON.stringify(next), version, attempts)))
      throw new Overtaken('another process delivers to this endpoint');
    version += 1;
    row = next;
  };

  await save(row, []);
  return { value: () => row, save, isOutOfReach: (error) => !(error instanceof Overtaken) };
};
