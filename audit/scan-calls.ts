/** What the scans of an auditor call outside of their thread: the read models, for the merchant of a payment. */
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import type { PaymentDocument } from '../shared/read-models/port.ts';
import type { ScanTools } from '../shared/runtime/scan.ts';
import type { AuditDeps } from './deps.ts';

/** The calls of a scan's order. */
export const scanCalls = ({ readModels }: Pick<AuditDeps, 'readModels'>) => ({
  getAny: async (paymentId: string): Promise<PaymentDocument | undefined> => {
    try {
      return await readModels.getAny(paymentId);
    } catch (error) {
      // The class of an error does not reach the thread, and unknown is all that it makes of this one.
      if (error instanceof ReadModelsUnavailable) return undefined;
      throw error;
    }
  },
});

/** The read models as the scan sees them. */
export const readModelsOver = (call: ScanTools['call']) => ({
  getAny: async (paymentId: string) =>
    (await call('getAny', paymentId)) as PaymentDocument | undefined,
});
