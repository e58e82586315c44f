/** Seals the texts of a person in a request: before its event is decided, so that no copy of it is in the clear. */
import { inCanonicalForm } from '../shared/event-store/codec.ts';
import { type PaymentEventType, streamOf } from '../shared/payment/events.ts';
import { type PersonalGroup, personalGroup } from '../shared/payment/fields.ts';
import { type SealedBox, sealBox } from './box.ts';
import type { KeyStore } from './port.ts';

type Keys = Pick<KeyStore, 'take'>;
type Place = { paymentId: string; type: PaymentEventType; field: 'personal' | 'reason' };

/** Throws KeysUnavailable where there is no key within `waitMs`. */
export const sealText = async (
  keys: Keys,
  { paymentId, type: eventType, field }: Place,
  text: unknown,
  waitMs: number,
): Promise<SealedBox> =>
  sealBox(await keys.take(waitMs), { stream: streamOf(paymentId), eventType, field }, text);

const ordered = inCanonicalForm(personalGroup);

/** `group` is in the order of stored fields, which is that of the answers. Throws as `sealText`. */
export const sealGroup = async (
  keys: Keys,
  paymentId: string,
  given: PersonalGroup,
  waitMs: number,
) => {
  const group = ordered(given);
  const place = { paymentId, type: 'PaymentCreated', field: 'personal' } as const;
  return { group, personal: await sealText(keys, place, group, waitMs) };
};
