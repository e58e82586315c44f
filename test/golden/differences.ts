/**
 * What the code says otherwise than it did when the golden folder was made, on purpose: one entry each,
 * with its reason. A text that is named here is compared after `from` was replaced in the kept one and in
 * the one of now. A pattern that looks far behind looks ahead first: else each place of a long text is tried.
 */
export type Difference = { names: RegExp; from: RegExp; to: string; reason: string };

const DIFFERENCES: readonly Difference[] = [
  {
    names: /^parked\/cli\/parked$/,
    from: /"since": "[^"]+"/g,
    to: '"since": "the time of the filling"',
    reason:
      'The check of a stored read model is an HMAC, so the first start fills the kept read models anew, and a payment that cannot be read is parked since then.',
  },
  {
    names: /^docs\/openapi(-audit)?\.json$/,
    from: /,\n *"description": ".*"(?=\n)|^\s*"(?:description|summary)": .*\n/gm,
    to: '',
    reason: 'Each field has a sentence, and the sentences say who acts.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /,\n( *)"examples": \{(?:\n(?:\1 .*\n)*\1)?\}/g,
    to: '',
    reason: 'A route of operators and auditors shows one example in place of one for each status.',
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
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {4}"\/ops\/v1\/attention[^"]*": \{\n(?: {6}.*\n)* {4}\},\n|^ {6}"Attention\w+": \{\n(?: {8}.*\n)* {6}\},\n|^ {6}"ItemId": \{\n(?: {8}.*\n)* {6}\},\n/gm,
    to: '',
    reason: 'What needs a person has a list.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ +"INCOMPLETE",\n|(?<="NOT_COMPARABLE"\n +\]),|,\n +"(unreadable|unsealed)": \{\n[^}]*\}/gm,
    to: '',
    reason: 'A log whose chain holds, and of which an event cannot be read, is INCOMPLETE.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {4}"\/audit\/v1\/export": \{\n(?: {6}.*\n)* {4}\},\n|,\n {10}"signature": \{\n(?: {12}.*\n)* {10}\}/gm,
    to: '',
    reason: 'An export has an address of its own, whose last line is its signed manifest.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {10}\{\n {12}"name": "(?:manifest|position)",\n(?: {10}.*\n)*/gm,
    to: '',
    reason:
      'A verification takes a manifest whole in place of its head alone, which has no signature.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {4}"\/ops\/v1\/log\/acknowledge": \{\n(?: {6}.*\n)* {4}\},\n/gm,
    to: '',
    reason:
      'A break can be acknowledged that a verification named, and no log of examples has one (gaps §25).',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {18}"type": \{\n(?: {20}.*\n)* {18}\},\n(?= {18}"account")|(?<="payment_intent": \{\}),\n +"status": \{\}/gm,
    to: '',
    reason: 'What a notice tells decides whether Stripe is asked.',
  },
  {
    names: /^cli\/verify-file$/,
    from: /,\n {2}"(finding": "INTACT"|signed": (true|false))/g,
    to: '',
    reason:
      'The verification of a file says its finding in one word, and whether its manifest is signed.',
  },
  {
    names: /^parked\/cli\/verify-file$/,
    from: /^[\s\S]+$/,
    to: '',
    reason: 'An export with an event that cannot be read was intact, and is INCOMPLETE.',
  },
  {
    names: /^docs\/asyncapi\.yaml$/,
    from: /^ {6}Payment(Capture|Void)Observed:\n {8}.*\n|^ {4}Payment(Capture|Void)Observed:\n(?: {6}.*\n)*/gm,
    to: '',
    reason: 'What was captured or canceled elsewhere has messages of its own.',
  },
  {
    names: /^parked\/cli\/reconcile$/,
    from: /,\s*\{\s*"kind": "MISSING_AT_PROVIDER",\s*"operationId": "01J00000000000000000000001",[^{}]*"log": \{[^{}]*\}\s*\}|"(operations|MISSING_AT_PROVIDER)": [0-9]+,/g,
    to: '',
    reason: 'A void that no intent asked for is listed and counted; it was passed over.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /; it breaks at character \d+(?=")/g,
    to: '',
    reason: 'A body that is no JSON is told where it breaks.',
  },
  {
    names: /^(parked\/)?(get|list|repeat|topic|webhooks)\//,
    from: /,\\*"advice\\*":\\*"[A-Z_]+\\*"/g,
    to: '',
    reason: 'Each failure says what to do about it, also one that was stored before (gaps §23).',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /,\n *"advice": "RETRY_LATER",\n *"networkDeclineCode": "05"|,\n {10}"(advice|network(Decline|Advice)Code)": \{\n(?: {12}.*\n)* {10}\}|(?<="failureCode"),\n *"advice"(?=\n *\])/g,
    to: '',
    reason: 'Each failure says what to do about it, and in the codes of the card network why.',
  },
  {
    names: /^(parked\/)?cli\/rebuild$/,
    from: /"hash": "[0-9a-f]{64}"/g,
    to: '"hash": "of the read models"',
    reason: 'The read models hold the advice too.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /^ {6}"Metadata": \{\n(?: {8}.*\n)* {6}\},\n|,\n {10}"metadata": \{\n {12}.*\n {10}\}/gm,
    to: '',
    reason: 'A create takes metadata (gaps §22).',
  },
  {
    names: /^docs\/openapi(-audit)?\.json$/,
    from: /,\n( *)"authorizationExpiresAt": (?:"[^"]*"|\{\n(?:\1 .*\n)*\1\})|,\n *\{\n *"path": "authorizationExpiresAt",\n.*\n *\}/g,
    to: '',
    reason: 'An authorized payment says when its authorization ends (gaps §24).',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /,\n( *)"(?:advice|networkDeclineCode|networkAdviceCode)": \{\n(?:\1 .*\n)*\1\}/g,
    to: '',
    reason: 'A comparison with the provider shows its advice too (gaps §23).',
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
  {
    names: /^docs\/openapi\.json$/,
    from: /^ *"payment\.authorization_expiring",\n|payment\.authorization_expiring, /gm,
    to: '',
    reason: 'The end of an authorization is told 48 hours before (gaps §24).',
  },
  {
    names: /^docs\/asyncapi\.yaml$/,
    from: /^ {6}PaymentAuthorizationExpiring:\n {8}.*\n|^ {4}PaymentAuthorizationExpiring:\n(?: {6}.*\n)*/gm,
    to: '',
    reason: 'The end of an authorization is told 48 hours before (gaps §24).',
  },
  {
    names: /^(parked\/)?endpoints\//,
    from: /\\*"payment\.authorization_expiring\\*",/g,
    to: '',
    reason: 'An endpoint without a list is told of it too (gaps §24).',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {8}"parameters": \[\n {10}\{\n {12}"name": "since",\n(?: {10}.*\n)* {8}\],\n|(?= {10}"400")(?<="\/audit\/v1\/reconcile": \{\n(?: {6}.*\n)*) {10}"400": \{\n(?: {12}.*\n)* {10}\},\n|,\n {22}"since": "[^"]+"|(?<="ok": \{\n {12}"type": "boolean",?\n {10}\},\n) {10}"since": \{\n {12}"type": "string"\n {10}\},\n/gm,
    to: '',
    reason: 'A reconciliation is of a window, since a time, or of everything.',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ +"falling-behind",\n/gm,
    to: '',
    reason: 'A projector that applies less than the log gets says so.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /"currency must be (?:a valid ISO 4217 code|three capital letters, as in USD)"/g,
    to: '"currency"',
    reason: 'What is said of a currency in small letters names its form (gaps §3).',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /(?<="name": "cursor",\n(?: +"(?:in|required|schema)": .*\n)* +"type": "string"),\n +"minLength": 1,\n +"maxLength": 255/g,
    to: '',
    reason: 'A cursor is refused by its length before it is read (gaps §11).',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /^ *"Payment-Outcome": \{\n(?:(?! *\}).*\n)*? *(?:"schema": \{[^}]*\}\n *)?\},\n/gm,
    to: '',
    reason: 'A 503 says for programs whether money may have moved (gaps §7).',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /,\n( *)"(?:theShopperIsNeeded|byAToken|withMetadata|withResultsOf3DSecure|not)": \{\n(?:\1 .*\n)*\1\}|,\n *"minProperties": 1|,\n *"null"(?=\n *\])|,\n *null(?=\n *\])/g,
    to: '',
    reason:
      'A create has examples with a token, with metadata and with 3-D Secure; schemas say what is exclusive and where null is taken.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /"type": \[\n *("\w+")\n *\]/g,
    to: '"type": $1',
    reason: 'A type beside null.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /,\n *\{\n *"name": "Additions to the contract",?\n *\}/g,
    to: '',
    reason: 'The list of payments is under the tag of payments.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /"Additions to the contract"/g,
    to: '"Payments"',
    reason: 'The list of payments is under the tag of payments.',
  },
  {
    names: /./,
    from: /This address does not know this method\./g,
    to: 'This method is not allowed here.',
    reason: 'The message of METHOD_NOT_ALLOWED says what is not allowed.',
  },
  {
    names: /./,
    from: /The payment violates a business rule\./g,
    to: 'A business rule forbids this.',
    reason: 'BUSINESS_RULE_VIOLATION also rejects what is no payment.',
  },
  {
    names: /^docs\/openapi(-audit)?\.json$/,
    from: /(?= {10}"4)(?<="\/(?:ops\/v1\/(?:settings|unresolved|parked|log|projections|topics\/parked[^"]*)|api\/v1\/webhook-endpoints)": \{\n(?: {6}.*\n)*) {10}"4(?:00|22)": \{\n(?: {12}.*\n)* {10}\},\n/g,
    to: '',
    reason: 'A parameter that is not known is rejected by each list, and a retry without a broker.',
  },
  {
    names: /^audit\/.*\/state\//,
    from: /, as in 2026-01-31T08:00:00Z/g,
    to: '',
    reason: 'What is said of a malformed moment has an example.',
  },
  {
    names: /^cli\/rebuild$/,
    from: /^[0-9a-f]{64}$/,
    to: 'a digest',
    reason: 'The checksum is of the read models, which hold the box beside what is open.',
  },
  {
    names: /^docs\/openapi\.json$/,
    from: /,\n {10}"personalData": \{\n(?: {12}.*\n)* {10}\}|^ {6}"PersonalData": \{\n(?: {8}.*\n)* {6}\},\n/gm,
    to: '',
    reason: 'A payment whose names were erased says so (gaps §19).',
  },
  {
    names: /^docs\/asyncapi\.yaml$/,
    from: /^ {6}Payment(?:Erasure\w+|PersonalDataErased):\n {8}.*\n|^ {4}Payment(?:Erasure\w+|PersonalDataErased):\n(?: {6}.*\n)*/gm,
    to: '',
    reason: 'Analysts who have names from elsewhere are told to erase them (gaps §19).',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {4}"\/ops\/v1\/(?:payments\/\{paymentId\}\/erase|people)[^"]*": \{\n(?: {6}.*\n)* {4}\},\n|^ {6}"(?:EraseRequest|Erasure|HoldRequest|PeopleSearch|PeopleFound)": \{\n(?: {8}.*\n)* {6}\},\n/gm,
    to: '',
    reason: 'Names, addresses and free texts can be erased (gaps §19).',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /^ {10}\{\n {12}"name": "keys",\n(?: {12}.*\n)* {10}\},\n|^ {6}"AuditKeys": \{\n(?: {8}.*\n)* {6}\},\n|^ {10}"erased": \{\n(?: {12}.*\n)* {10}\},\n|,\n {10}"keys": \{\n(?: {12}.*\n)* {10}\}/gm,
    to: '',
    reason: 'A verification counts erased payments, and can look at the keys (gaps §19).',
  },
  {
    names: /^docs\/openapi-audit\.json$/,
    from: /,\n {10}\{\n {12}"name": "personal",\n(?: {12}.*\n)* {10}\}/g,
    to: '',
    reason: 'An auditor can leave texts of a person sealed (gaps §19).',
  },
];

const replaced = (differences: readonly Difference[], name: string, text: string): string =>
  differences
    .filter(({ names }) => names.test(name))
    .reduce((changed, { from, to }) => changed.replace(from, to), text);

/** A text in which what differs on purpose is replaced. */
export const comparableText = (name: string, text: string): string =>
  replaced(DIFFERENCES, name, text);

/** A text without what was added, whose digest is that of the kept one. */
export const withoutAdditions = (name: string, text: string): string =>
  replaced(
    DIFFERENCES.filter(({ to }) => to === ''),
    name,
    text,
  );
