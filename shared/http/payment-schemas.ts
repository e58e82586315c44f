/**
 * What both a request and a response may hold of a payment (interface, "Resources and their
 * fields"), in the contract's names and order.
 */
import {
  countableInteger,
  object,
  optionalChoice,
  optionalCountry,
  optionalText,
  requiredChoice,
  requiredObject,
  requiredText,
} from './fields.ts';

/** `line1` and `postalCode` are the older names of `street` and `zip`. */
export const Address = requiredObject({
  street: optionalText(),
  line1: optionalText().meta({ deprecated: true, writeOnly: true }),
  city: optionalText(),
  country: optionalCountry(),
  state: optionalText(),
  zip: optionalText(),
  postalCode: optionalText().meta({ deprecated: true, writeOnly: true }),
}).meta({ id: 'Address' });

export const ProductItem = object({
  id: requiredText(),
  name: requiredText(),
  quantity: countableInteger(),
  unitPrice: countableInteger(),
  goodsType: requiredChoice(['PHYSICAL', 'DIGITAL']),
}).meta({ id: 'ProductItem' });

export const Consumer = object({
  firstName: requiredText(),
  lastName: optionalText(),
  email: requiredText(),
  phone: optionalText(),
  ip: optionalText(),
}).meta({ id: 'Consumer' });

export const Billing = object({ address: Address }).meta({ id: 'Billing' });

export const Shipping = object({
  address: Address.optional(),
  firstName: optionalText(),
  lastName: optionalText(),
}).meta({ id: 'Shipping' });

export const Source = object({
  storeId: requiredText(),
  initiatedBy: optionalChoice(['CONSUMER', 'MERCHANT']),
  externalMerchantId: optionalText(),
}).meta({ id: 'Source' });
