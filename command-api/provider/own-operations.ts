/**
 * A provider knows nothing of what another one was sent (ADR-0247): it would say "not found", and
 * fence an operation that moved money. So it is not asked, and the outcome stays unknown.
 */
import { isOtherProvider } from '../../shared/payment/payment-state.ts';
import { OTHER_PROVIDER, type Provider, type Unknown } from './port.ts';

const AT_OTHER_PROVIDER: Unknown = { outcome: 'UNKNOWN', reason: OTHER_PROVIDER };

export const forOwnOperations = <P extends Provider>(provider: P, names: readonly string[]): P => {
  const isOther = (sentTo: string | undefined): boolean => isOtherProvider(sentTo, names);
  return {
    ...provider,
    lookUp: async (question) =>
      isOther(question.provider) ? AT_OTHER_PROVIDER : provider.lookUp(question),
    fence: async (question) =>
      isOther(question.provider) ? AT_OTHER_PROVIDER : provider.fence(question),
    laterResults: async (question) =>
      isOther(question.provider) ? AT_OTHER_PROVIDER : provider.laterResults(question),
  };
};
