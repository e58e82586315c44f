/**
 * What the code says otherwise than it did when the golden folder was made, on purpose: one entry each,
 * with its reason. A text that is named here is compared after `from` was replaced in the kept one and in
 * the one of now.
 */
export type Difference = { names: RegExp; from: RegExp; to: string; reason: string };

export const DIFFERENCES: readonly Difference[] = [
  {
    names: /^parked\/cli\/parked$/,
    from: /"since": "[^"]+"/g,
    to: '"since": "the time of the filling"',
    reason:
      'The check of a stored read model is an HMAC, so the first start fills the kept read models anew, and a payment that cannot be read is parked since then.',
  },
  {
    names: /^docs\/openapi(-audit)?\.json$/,
    from: /^\s*"description": .*\n/gm,
    to: '',
    reason: 'Each field has a sentence.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /\{\s*\}/g,
    to: '{}',
    reason: 'A field of any form has a sentence too.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /^ {2}"webhooks": \{\n(?: {4}.*\n)* {2}\},\n|^ {6}"(Payment|Endpoint)Message": \{\n(?: {8}.*\n)* {6}\},\n/gm,
    to: '',
    reason: 'The document describes the messages of webhooks.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /,\s*\{\s*"name": "(revision|at)",[^}]*\}\s*\}/g,
    to: '',
    reason: 'A command is explained at a moment too: the route takes a revision or a time.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /^ {10}"202": \{\n(?:(?! {10}\}).*\n)*?.*"theShopperIsNeeded"(?:.*\n)*? {10}\},\n|,\s*"(?:threeDSecure|authentication|nextAction)": \{[^}]*\}|^ {6}"(?:ThreeDSecure(?:Response)?|Authentication|NextAction)": \{\n(?: {8}.*\n)* {6}\},\n/gm,
    to: '',
    reason: 'A card may have the results of 3-D Secure, or the wish for an authentication.',
  },
  {
    names: /^docs\/asyncapi\.yaml$/,
    from: /^ {6}PaymentAuthenticationRequested:\n {8}.*\n|^ {4}PaymentAuthenticationRequested:\n(?: {6}.*\n)*/gm,
    to: '',
    reason: 'A payment may wait for its shopper.',
  },
];
