/**
 * A provider that opens something before it moves money, as a driver of the port may: made of one
 * that does not. It has no record of its own of what it opened, and says of a create without a
 * reference that it was never carried out, which is true only as long as the log is believed.
 */
import type { OperationQuestion, Provider } from '../../providers/port.ts';

const isCreate = (kind: OperationQuestion['kind']): boolean =>
  kind === 'AUTHORIZE' || kind === 'SALE';

const wasNeverOpened = ({ kind, reference }: OperationQuestion): boolean =>
  isCreate(kind) && reference === undefined;

export const opening = (own: Provider): Provider => ({
  ...own,
  execute: async (operation, opened) => {
    if (!isCreate(operation.kind)) return own.execute(operation, opened);
    try {
      await opened(`opened_${operation.operationId.slice(-26)}`);
    } catch {
      return { outcome: 'NOT_SENT' };
    }
    return own.execute(operation, opened);
  },
  lookUp: async (question) =>
    wasNeverOpened(question) ? { outcome: 'NOT_FOUND' } : own.lookUp(question),
  fence: async (question) =>
    wasNeverOpened(question) ? { outcome: 'FENCED' } : own.fence(question),
});
