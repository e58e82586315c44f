import { createOf } from '../shared/payment/payment-state.ts';
import type { CommandDeps } from './deps.ts';
import type { LoadedPayment } from './loaded-payment.ts';
import { questionAbout } from './recovery/ask.ts';
import { actionRequired, type CommandResponse } from './responses.ts';

/** While the shopper is waited for: the address is stored nowhere, so the provider gives it again (gaps §21). */
export const addressAgain = async (
  { inFlight, provider }: Pick<CommandDeps, 'inFlight' | 'provider'>,
  payment: LoadedPayment,
): Promise<CommandResponse | undefined> => {
  const create = createOf(payment.state);
  if (!inFlight.isWaiting(create)) return undefined;
  const said = await provider.lookUp(questionAbout(payment, create));
  return said.outcome === 'ACTION_REQUIRED' ? actionRequired(payment, create, said.url) : undefined;
};
