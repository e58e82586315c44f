/**
 * The mistakes that the suite has to notice, by what they would break, each with the smallest test
 * file that does; and those that no test can notice, with the reason.
 *
 * `at` names a place in the sources: the line under the comment `// seeded bug: <at>`, with the
 * lines that belong to it (those indented under it, and the bracket that closes them). `change` is
 * what somebody did wrong there: see `Change`. Whoever moves such a line moves its comment along;
 * whoever renames what a change names sees test/scripts/seeded-bug-list.test.ts or the compiler
 * step of test/long/seeded-bugs.test.ts fail. Two bugs may share one place.
 */
import type { Change, SeededBug, UnnoticedBug } from './seeded-bugs.ts';

const without = (part: RegExp): Change => ({ replace: part, by: '' });

/** The condition goes, and what it protected happens always. */
const UNCONDITIONAL = without(/if \(.*\) (?=return|throw)/);

const STRIPE: SeededBug[] = [
  {
    name: 'Stripe: a hold that somebody canceled counts as expired',
    at: 'stripe-expired',
    change: { replace: /BY_ITSELF\.includes\(intent\.cancellation_reason\)/, by: 'true' },
    test: 'test/http/stripe-webhooks.test.ts',
  },
  {
    name: "Stripe: a merchant's payments are made in the installation's account",
    at: 'stripe-account-of-merchant',
    change: without(/merchants\?\.get\(merchantId\) \?\? /),
    test: 'test/contract/provider/stripe-accounts.test.ts',
  },
  {
    name: 'Stripe: no trace in another account counts as a fence',
    at: 'stripe-traceless-elsewhere',
    change: { replace: /return .*/, by: 'return FENCED;' },
    test: 'test/contract/provider/stripe-accounts.test.ts',
  },
  {
    name: 'Stripe: an open that names what does not exist is a decline of the card',
    at: 'stripe-missing-intent',
    change: 'delete',
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: what a capture of part released counts as a refund',
    at: 'stripe-release',
    change: { replace: /made\.amount === amount - received/, by: 'false' },
    test: 'test/contract/provider/stripe-later.test.ts',
  },
  {
    name: 'Stripe: a refund in the Dashboard closes the service for writing at its next start',
    at: 'stripe-ahead-by-dashboard',
    change: { replace: /=> entry\..*;/, by: '=> entry.operationId !== "";' },
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'a refund that bounced, and is recorded so, is a difference',
    at: 'bounced-is-no-difference',
    change: { replace: /own\.failedLater === true/, by: 'false' },
    test: 'test/http/stripe-webhooks.test.ts',
  },
  {
    name: 'Stripe: a void that was never sent reads as the one that a later void carried out',
    at: 'stripe-void-of-another',
    change: { replace: /name === question\.operationId/, by: 'name !== ""' },
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a void that was never sent reads as carried out once the authorization ran out',
    at: 'stripe-void-of-expired',
    change: { replace: /isExpired\(intent\)/, by: 'false' },
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: the ledger has a void that was never sent, once the authorization ran out',
    at: 'stripe-expired-in-ledger',
    change: without(/ && !isExpired\(intent\)/),
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'a repeat that the rules refuse is 503 while the attempt before it cannot be fenced',
    at: 'refused-before-fence',
    change: {
      replace: /decide\(payment\.state, command\)/,
      by: "{ kind: 'events' } as ReturnType<typeof decide>",
    },
    test: 'test/http/restored-log.test.ts',
  },
  {
    name: 'Stripe: a void that was never sent is 503 for ever after a cancel in the Dashboard',
    at: 'void-after-void',
    change: without(/ && kind !== 'void'/),
    test: 'test/http/stripe.test.ts',
  },
  {
    name: 'a repeat of an operation whose outcome is unknown is told that it still runs',
    at: 'unresolved-is-not-running',
    change: { replace: /earlier\.mayRun\n/, by: 'earlier.paymentId !== ""\n' },
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: "a rejection of one merchant's key hides that of another",
    at: 'rejection-of-each-account',
    change: without(/ \$\{account \?\? ''\}/),
    test: 'test/contract/provider/resilience.test.ts',
  },
  {
    name: 'Stripe: a hold that our own fence released counts as approved',
    at: 'stripe-canceled',
    change: { replace: /isReleasedLater \? approved : IMPOSSIBLE/, by: 'approved' },
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a PaymentIntent of another amount is taken for the operation',
    at: 'stripe-same-operation',
    change: { replace: /intent\.amount === question\.amount/, by: 'true' },
    test: 'test/contract/provider/stripe.test.ts',
  },
  {
    name: "Stripe: another operation's capture counts for this one",
    at: 'stripe-own-capture',
    change: 'delete',
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a fence takes another key than that of the operation',
    at: 'stripe-fence-key',
    change: { replace: /operationId, \{/, by: "operationId + '-fence', {" },
    test: 'test/contract/provider/stripe-faults.test.ts',
  },
  {
    name: 'Stripe: only the first page of refunds is looked through',
    at: 'stripe-refund-pages',
    change: UNCONDITIONAL,
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a fence releases an authorization that was approved',
    at: 'stripe-fence-looks-first',
    change: 'delete',
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a cancel that failed counts as a fence',
    at: 'stripe-fence-proof',
    change: { replace: /unknown\('not_canceled'\)/, by: 'FENCED' },
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a key that may be forgotten by now is relied on',
    at: 'stripe-key-age',
    change: { replace: /KEY_AGE_MS_MAX/, by: 'Number.POSITIVE_INFINITY' },
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a confirm without a response counts as never sent',
    at: 'stripe-time-out',
    change: { replace: /response\.sent \? undecided\(response\) : /, by: '' },
    test: 'test/contract/provider/stripe-faults.test.ts',
  },
  {
    name: 'Stripe: the confirm is sent though its reference is not kept',
    at: 'stripe-opened-first',
    change: 'delete',
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: the confirm is sent with no time left to wait for it',
    at: 'stripe-late-confirm',
    change: 'delete',
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'Stripe: a notice that was signed long ago is heard',
    at: 'webhook-tolerance',
    change: { replace: / \|\| ageS > TOLERANCE_S/, by: '' },
    test: 'test/http/stripe-webhooks.test.ts',
  },
  {
    name: 'Stripe: a notice is heard whoever signed it',
    at: 'webhook-signature',
    change: { replace: /return given\.some/, by: 'return given.length > 0 || given.some' },
    test: 'test/http/stripe-webhooks.test.ts',
  },
  {
    name: 'Stripe: a live key needs no second word',
    at: 'stripe-live-key',
    change: 'delete',
    test: 'test/config/config.test.ts',
  },
];

const INTENT_AND_PROVIDER: SeededBug[] = [
  {
    name: 'create: the provider is asked before the intent is stored',
    at: 'intent-before-call',
    change: {
      before: `await deps.provider.execute({
          operationId,
          paymentId: request.paymentId,
          amount: Number(request.command.amountMinor),
          currency: 'USD',
          ...request.call,
        });`,
    },
    test: 'test/processes/lost-appends.test.ts',
  },
  {
    name: 'the provider is asked under another operation id than the intent has',
    at: 'call-under-operation-id',
    change: { replace: /operationId/, by: 'operationId: crypto.randomUUID()' },
    test: 'test/recovery/unknown-outcomes.test.ts',
  },
  {
    name: 'an append of unknown outcome is repeated with new event ids',
    at: 'append-repeated',
    change: { replace: /events/, by: 'events.map((event) => ({ ...event, id: newEventId() }))' },
    test: 'test/processes/lost-appends.test.ts',
  },
  {
    name: 'a conflict of revisions is not decided again',
    at: 'decided-again',
    change: { replace: /if \(!/, by: 'if (' },
    test: 'test/processes/races.test.ts',
  },
  {
    name: 'a call past the budget is sent all the same',
    at: 'budget-spent',
    change: 'delete',
    test: 'test/processes/lost-appends.test.ts',
  },
  {
    name: 'a call is begun when others no longer wait for it',
    at: 'too-late-to-call',
    change: 'delete',
    test: 'test/processes/in-flight.test.ts',
  },
  {
    name: 'the time of an event may run backwards',
    at: 'time-never-back',
    change: without(/\w+ < .* : /),
    test: 'test/processes/remembered-payments.test.ts',
  },
];

const RECOVERY: SeededBug[] = [
  {
    name: 'an intent of another process counts by the clock of that process',
    at: 'intent-seen-fresh',
    change: 'delete',
    test: 'test/processes/clock-skew.test.ts',
  },
  {
    name: 'an own intent counts by the clock on the wall',
    at: 'own-intent-seen',
    change: 'delete',
    test: 'test/processes/clock-skew.test.ts',
  },
  {
    name: 'recovery asks about another operation of the payment',
    at: 'question-of-recovery',
    change: {
      replace: /questionAbout\(payment, operation\)/,
      by: 'questionAbout(payment, payment.state.operations[0] ?? operation)',
    },
    test: 'test/recovery/unknown-outcomes.test.ts',
  },
  {
    name: 'a bare "not found" is believed without the fence',
    at: 'fence',
    change: { replace: /await .* : /, by: "({ outcome: 'FENCED' } as const) : " },
    test: 'test/recovery/unknown-outcomes.test.ts',
  },
  {
    name: 'what was not found is never fenced, and stays open',
    at: 'fence',
    change: without(/\S+ === .* : /),
    test: 'test/recovery/recovery.test.ts',
  },
  {
    name: 'an unknown outcome is closed as failed',
    at: 'unknown-stays-unresolved',
    change: { replace: /undefined/, by: "{ outcome: 'NOT_SENT' }" },
    test: 'test/cli/resolve.test.ts',
  },
  {
    name: "another process's live operation is asked about at once",
    at: 'others-in-flight',
    change: UNCONDITIONAL,
    test: 'test/processes/in-flight.test.ts',
  },
  {
    name: "a person's word ends the asking",
    at: 'asked-on',
    change: { replace: /confirmByAsking\(deps, payment, goOn\)/, by: 'Promise.resolve(payment)' },
    test: 'test/recovery/confirm.test.ts',
  },
  {
    name: 'what was resolved by hand is forgotten by the sweep of the log',
    at: 'sweep-of-unconfirmed',
    change: { replace: /'resolution' in event\.data/, by: 'false' },
    test: 'test/recovery/confirm.test.ts',
  },
  {
    name: 'a disputed payment is refunded',
    at: 'refund-while-disputed',
    change: 'delete',
    test: 'test/http/later-results.test.ts',
  },
  {
    name: 'the brand of a token is the one that the request gives',
    at: 'brand-of-token',
    change: { replace: /numberBrand: described\.brand/, by: 'numberBrand: given.brand as never' },
    test: 'test/http/card-token.test.ts',
  },
  {
    name: 'a wrong key or a rate limit opens the breaker',
    at: 'breaker-counts-rejections',
    change: { replace: /return .*/, by: 'return true;' },
    test: 'test/contract/provider/resilience.test.ts',
  },
  {
    name: 'what the provider has opened hides an operation from the sweep of the log',
    at: 'sweep-of-opened',
    change: 'delete',
    test: 'test/recovery/opened.test.ts',
  },
  {
    name: 'a fence is recorded over what the provider has opened since',
    at: 'fence-of-opened',
    change: 'delete',
    test: 'test/recovery/opened.test.ts',
  },
  {
    name: 'something is opened on an operation that was fenced',
    at: 'opened-after-outcome',
    change: { replace: /ended !== undefined \|\| /, by: '' },
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'money moves before what was opened is stored',
    at: 'open-before-money',
    change: { replace: /progress\.payment = await/, by: 'void' },
    test: 'test/recovery/opened.test.ts',
  },
  {
    name: 'a contradiction by the provider passes as a confirmation',
    at: 'contradiction',
    change: without(/if \(.*\) (?=return)/),
    test: 'test/domain/decide-resolution.test.ts',
  },
  {
    name: 'one person alone resolves an operation by hand',
    at: 'second-person',
    change: 'delete',
    test: 'test/domain/decide-resolution.test.ts',
  },
  {
    name: "another person's other word counts as the approval",
    at: 'request-equal',
    change: { replace: /!isEqual\(request, command\)/, by: 'false' },
    test: 'test/domain/decide-resolution.test.ts',
  },
  {
    name: 'declined by hand without a fence, and without saying so',
    at: 'declined-needs-fence',
    change: { replace: /!withoutFence/, by: 'false' },
    test: 'test/recovery/resolve.test.ts',
  },
  {
    name: 'a merchant with ops:resolve resolves its own payment',
    at: 'resolve-all-merchants',
    change: 'delete',
    test: 'test/recovery/resolve.test.ts',
  },
  {
    name: 'a payment is compared with the provider for another merchant',
    at: 'reconciled-payment-of-merchant',
    change: { replace: /merchantId === '\*' \|\| .* \? payment : undefined/, by: 'payment' },
    test: 'test/audit/routes.test.ts',
  },
  {
    name: 'an operation that log and provider do not agree on counts as agreeing',
    at: 'differing-operation',
    change: {
      replace: /return differs\(/,
      by: "return ((..._: string[]) => ({ finding: 'AGREES' as const, why: '' }))(",
    },
    test: 'test/audit/reconcile.test.ts',
  },
  {
    name: 'recovery gives up after the last wait',
    at: 'attempts-without-end',
    change: { after: 'if (schedule.attempts > delaysMs.length) return end(paymentId);' },
    test: 'test/recovery/retry-schedule.test.ts',
  },
  {
    name: 'the sweep does not read what came after the checkpoint',
    at: 'sweep-reads-log',
    change: { replace: /await .*(?=;)/, by: 'new Map()' },
    test: 'test/recovery/recovery.test.ts',
  },
  {
    name: 'the sweep overlooks parked payments',
    at: 'sweep-of-parked',
    change: 'delete',
    test: 'test/recovery/recovery.test.ts',
  },
  {
    name: 'a provider is asked about, and fences, what another one was sent',
    at: 'asked-at-other-provider',
    change: {
      replace: /isOtherProvider\(sentTo, names\)/,
      by: "sentTo === '' && names.length === 0",
    },
    test: 'test/recovery/other-provider.test.ts',
  },
  {
    name: 'a capture is sent to another provider than the one that authorized it',
    at: 'change-at-other-provider',
    change: { replace: /providers\.length > 0/, by: 'providers.length < 0' },
    test: 'test/domain/other-provider.test.ts',
  },
  {
    name: 'what another provider was sent counts as missing at the one that is set',
    at: 'entry-at-other-provider',
    change: without(/ && !isElsewhere\(own\.provider\)/),
    test: 'test/audit/reconcile.test.ts',
  },
  {
    name: 'a person may end what the provider still answers for',
    at: 'person-asks-provider',
    change: { replace: /await .*(?=;)/, by: 'undefined' },
    test: 'test/recovery/resolve.test.ts',
  },
];

const RULES: SeededBug[] = [
  {
    name: 'refunds have no ceiling',
    at: 'refund-ceiling',
    change: without(/ \|\| \w+ > \w+/),
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'a payment has no ceiling of operations',
    at: 'operations-ceiling',
    change: 'delete',
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'a message that is too large for the broker stops the relay',
    at: 'too-large-parks-one',
    change: UNCONDITIONAL,
    test: 'test/projector/relay-parking.test.ts',
  },
  {
    name: 'a cache counts entries and no bytes',
    at: 'bounded-by-bytes',
    change: 'delete',
    test: 'test/memory/large-payments.test.ts',
  },
  {
    name: 'a long stream is folded in one go, and everything else waits',
    at: 'loop-shared',
    change: { replace: /index > 0/, by: 'index < 0' },
    test: 'test/memory/large-payments.test.ts',
  },
  {
    name: 'a document that is too large for the store stops the projection',
    at: 'too-large-document-parks-one',
    change: { replace: /DocumentTooLarge\)/, by: "DocumentTooLarge) || error.message !== ''" },
    test: 'test/projector/document-size.test.ts',
  },
  {
    name: 'a state message has every transaction of its payment',
    at: 'last-transactions',
    change: 'delete',
    test: 'test/projector/message-size.test.ts',
  },
  {
    name: 'open refunds reserve nothing',
    at: 'refund-reserves',
    change: without(/ - reserved/),
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'more may be captured than was authorized',
    at: 'capture-ceiling',
    change: without(/ \|\| \w+ > [\w.]+/),
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'a captured payment may be voided',
    at: 'void-of-authorized',
    change: { replace: /\) \{/, by: " && state.status !== 'CAPTURED') {" },
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'what a partial capture releases is not recorded',
    at: 'released-amount',
    change: { replace: /\{ \w+ \}/, by: '{}' },
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'an unresolved capture or void excludes nothing',
    at: 'exclusive-operations',
    change: { replace: /!== 'refund'/, by: "=== 'create'" },
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'a second outcome of one operation is recorded too',
    at: 'one-outcome',
    change: 'delete',
    test: 'test/domain/decide.test.ts',
  },
  {
    name: 'commands of one payment do not wait for one another',
    at: 'one-at-a-time',
    change: { replace: /\w+ === .* \? (.*) : .*(?=;)/, by: '$1' },
    test: 'test/http/idempotency.test.ts',
  },
];

const IDEMPOTENCY: SeededBug[] = [
  {
    name: 'a change that loses the append to its own repeat elsewhere is carried out again',
    at: 'repeat-at-append',
    change: 'delete',
    test: 'test/domain/decide.test.ts',
  },
  {
    name: "another process's intent under the same key is taken for an own one",
    at: 'intent-of-another',
    change: { replace: /isIntentOf\(.*?\)(?=\))/, by: 'true' },
    test: 'test/processes/idempotency.test.ts',
  },
  {
    name: 'an operation id under a key is random',
    at: 'derived-operation-id',
    change: { replace: /crockford\(.*\)/, by: 'crypto.randomUUID()' },
    test: 'test/http/restored-log.test.ts',
  },
  {
    name: 'the idempotency secret before the current one is ignored',
    at: 'previous-secret',
    change: 'delete',
    test: 'test/http/secret-rotation.test.ts',
  },
  {
    name: 'any change of the idempotency secret is accepted',
    at: 'previous-secret-matches',
    change: 'delete',
    test: 'test/http/secret-rotation.test.ts',
  },
  {
    name: 'an older idempotency secret that wrote nothing is accepted, so repeats are charged again',
    at: 'older-secret-known',
    change: { replace: /previous !== own.*\)\) return/, by: 'older.length > 0) return' },
    test: 'test/http/secret-rotation.test.ts',
  },
  {
    name: 'a provider ahead of the log is not noticed',
    at: 'ahead-of-log',
    change: { replace: /=== false/, by: '=== undefined' },
    test: 'test/http/restored-log.test.ts',
  },
  {
    name: 'the end of an earlier ledger counts as acknowledged at another provider',
    at: 'acknowledged-at-other-provider',
    change: { replace: /isOtherProvider\([^)]*\)/, by: "providers.includes('')" },
    test: 'test/provider-ahead/provider-ahead.test.ts',
  },
  {
    name: 'payments are taken while the provider is ahead of the log',
    at: 'read-only-start',
    change: { replace: /'ahead'/, by: 'undefined' },
    test: 'test/http/restored-log.test.ts',
  },
  {
    name: 'a key gets its next attempt while the provider may still take the one before',
    at: 'fence-before-next-attempt',
    change: {
      replace: /await provider\.fence\(.*\)/,
      by: "{ outcome: 'FENCED' as 'FENCED' | 'UNKNOWN' | 'APPROVED' }",
    },
    test: 'test/http/restored-log.test.ts',
  },
  {
    name: 'a slow read takes back what was appended meanwhile',
    at: 'nothing-unlearned',
    change: 'delete',
    test: 'test/memory/payment-log.test.ts',
  },
  {
    name: 'a refusal after an append of unknown outcome is taken for its outcome',
    at: 'refusal-after-unknown',
    change: UNCONDITIONAL,
    test: 'test/memory/payment-log.test.ts',
  },
  {
    name: 'create: the fingerprint leaves the amount out',
    at: 'create-fingerprint',
    change: 'delete',
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: 'capture, refund: the fingerprint leaves the amount out',
    at: 'change-fingerprint',
    change: 'delete',
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: 'a replay does not say that it is one',
    at: 'replay-header',
    change: without(/, 'idempotent-replayed'.*(?= \})/),
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: 'a repeat under a key is decided anew',
    at: 'repeat-replayed',
    change: 'delete',
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: 'a replay has the body of now',
    at: 'replay-revision',
    change: { replace: /, revision (.*)/, by: ' $1 const revision = last;' },
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: 'the scope of a key leaves the merchant out',
    at: 'key-scope',
    change: { replace: /\('payment', \w+/, by: "('payment'" },
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: 'what was fenced keeps its key',
    at: 'free-key',
    change: without(/ \|\| .*(?=;)/),
    test: 'test/http/idempotency.test.ts',
  },
  {
    name: 'unique references: the claims are not read again after the intent',
    at: 'reference-read-again',
    change: { replace: /stillClaims\(.*\)/, by: 'Promise.resolve(true)' },
    test: 'test/http/unique-references.test.ts',
  },
  {
    name: 'unique references: only the last claimant is looked at',
    at: 'all-claimants',
    change: { replace: /\.filter/, by: '.slice(-1).filter' },
    test: 'test/http/unique-references.test.ts',
  },
];

const MERCHANTS_AND_TOKENS: SeededBug[] = [
  {
    name: 'a payment that cannot be read is 500 for every merchant, and so shows that it exists',
    at: 'unreadable-of-merchant',
    change: {
      replace: /first\?\.event\.type.*/,
      by: 'first !== undefined || merchantId !== undefined;',
    },
    test: 'test/http/unreadable-payment.test.ts',
  },
  {
    name: "GET folds another merchant's payment",
    at: 'get-of-merchant',
    change: { replace: /\S+ === .* \? (\w+) : \w+/, by: '$1' },
    test: 'test/http/get-payment.test.ts',
  },
  {
    name: "the read models hand out another merchant's document",
    at: 'document-of-merchant',
    change: { replace: /\S+ === .* \? (\w+) : \w+/, by: '$1' },
    test: 'test/contract/read-models/sqlite.test.ts',
  },
  {
    name: "commands find another merchant's payment",
    at: 'command-of-merchant',
    change: without(/ && \S+ === \w+/),
    test: 'test/http/capture-void-refund.test.ts',
  },
  {
    name: 'a document is served whoever wrote it',
    at: 'row-check',
    change: { replace: / === check/, by: " !== ''" },
    test: 'test/contract/read-models/sqlite.test.ts',
  },
  {
    name: 'a forged document puts a payment on a list where it does not belong',
    at: 'damaged-meets-search',
    change: without(/ \|\| !meets\(row, search\)/),
    test: 'test/http/forged-read-models.test.ts',
  },
  {
    name: 'a document is taken for equal to the log without its bytes',
    at: 'compared-bytes',
    change: {
      replace: /contentOf\(expected\) === contentOf\(row\)/,
      by: 'expected.revision === row.revision',
    },
    test: 'test/projector/sampler.test.ts',
  },
  {
    name: 'a rebuild throws away documents that say other money than the log',
    at: 'money-kept',
    change: {
      replace: /money\.count === 0 \|\| options\.accept === true/,
      by: 'money !== undefined',
    },
    test: 'test/projector/rebuild.test.ts',
  },
  {
    name: 'a stopped log that is not the one sealed last is shown as if it were',
    at: 'stopped-log-sealed',
    change: 'delete',
    test: 'test/audit/tampering-table.test.ts',
  },
  {
    name: 'no payment of the log is looked for in the read models',
    at: 'samples-the-log',
    change: { replace: /turn % 2 === 0/, by: 'turn > 0' },
    test: 'test/projector/sampler.test.ts',
  },
  {
    name: "the list has other merchants' payments",
    at: 'list-of-merchant',
    change: { replace: /, merchantId \}/, by: ' }' },
    test: 'test/http/list-payments.test.ts',
  },
  {
    name: "an auditor of one merchant reads another's history",
    at: 'history-of-merchant',
    change: { replace: /\|\| (\w+) === \w+/, by: '|| $1 !== undefined' },
    test: 'test/audit/access.test.ts',
  },
  {
    name: 'an auditor is shown a stream that was not verified',
    at: 'history-verified',
    change: { replace: /= .*/, by: '= undefined as AuditBreak | undefined;' },
    test: 'test/audit/broken-streams.test.ts',
  },
  {
    name: 'the merchant of a stream that does not verify is the one that it names',
    at: 'merchant-of-broken',
    change: { replace: /isBroken \? .*(?= : )/, by: 'isBroken ? undefined' },
    test: 'test/audit/broken-streams.test.ts',
  },
  {
    name: 'the log does not say who has read a payment',
    at: 'reading-recorded',
    change: 'delete',
    test: 'test/audit/routes.test.ts',
  },
  {
    name: 'a token of all merchants may make payments',
    at: 'no-payments-for-all',
    change: without(/\w+ !== '\*' && /),
    test: 'test/http/auth-hooks.test.ts',
  },
  {
    name: 'a token without scopes may audit',
    at: 'audit-by-name',
    change: { replace: /=== true/, by: '!== false' },
    test: 'test/http/auth-hooks.test.ts',
  },
  {
    name: 'the audience is not checked',
    at: 'audience',
    change: 'delete',
    test: 'test/http/tokens.test.ts',
  },
  {
    name: 'a token with another last character is the same token',
    at: 'signature-form',
    change: 'delete',
    test: 'test/http/tokens.test.ts',
  },
  {
    name: 'a token that was made for something else is taken',
    at: 'token-type',
    change: 'delete',
    test: 'test/http/tokens.test.ts',
  },
  {
    name: 'a token whose time has not come, or whose key is not there yet, stays rejected',
    at: 'rejection-remembered',
    change: { replace: /if \(isLasting\(error\)\) /, by: '' },
    test: 'test/http/tokens.test.ts',
  },
  {
    name: 'two forms of one name are two merchants',
    at: 'one-form-of-a-name',
    change: { replace: /\.normalize\('NFC'\)/, by: '' },
    test: 'test/http/tokens.test.ts',
  },
  {
    name: 'an expired token is good for five seconds more',
    at: 'expiry',
    change: 'delete',
    test: 'test/http/tokens.test.ts',
  },
];

const CARDS_AND_LOGS: SeededBug[] = [
  {
    name: 'the body of a request is logged',
    at: 'request-log',
    change: { replace: /request\.paymentId/, by: 'String(request.body)' },
    test: 'test/http/log.test.ts',
  },
  {
    name: 'the headers of a request are logged, its token with them',
    at: 'request-log',
    change: { replace: /request\.paymentId/, by: 'String(request.raw.rawHeaders)' },
    test: 'test/http/log.test.ts',
  },
  {
    name: 'the path is logged in place of the route',
    at: 'route-logged',
    change: { replace: /: .*(?=,)/, by: ': request.url' },
    test: 'test/http/log.test.ts',
  },
  {
    name: 'the scrubber is off',
    at: 'scrubber',
    change: { replace: /scrubCardNumbers\(line\)/, by: 'line' },
    test: 'test/http/log.test.ts',
  },
  {
    name: 'secret fields are logged',
    at: 'log-redaction',
    change: without(/, log: \w+/),
    test: 'test/http/log.test.ts',
  },
  {
    name: "the holder's name gets onto a topic",
    at: 'topic-card',
    change: { after: 'holderName: created.card.shape.holderName,' },
    test: 'test/projector/topics.test.ts',
  },
  {
    name: "the consumer's e-mail gets onto a topic",
    at: 'topic-order',
    change: { after: 'consumer: details.consumer,' },
    test: 'test/projector/topics.test.ts',
  },
  {
    name: 'the whole card goes into the event',
    at: 'masked-card',
    change: { replace: /maskCard\(card, numberBrand\)/, by: '{ ...card, ...$& }' },
    test: 'test/http/create-payment.test.ts',
  },
  {
    name: 'events take fields that no schema knows',
    at: 'strict-events',
    change: { replace: /true/, by: 'false' },
    test: 'test/domain/stored-events.test.ts',
  },
  {
    name: 'the card number may stand in another field of a create',
    at: 'card-in-create',
    change: { replace: /=== '[\w.]+'/, by: '!== undefined' },
    test: 'test/http/create-payment.test.ts',
  },
  {
    name: 'the keys of the issuer are thrown away when they cannot be loaded anew',
    at: 'last-good-keys',
    change: { replace: /LAST_GOOD_MS/, by: 'FRESH_MS' },
    test: 'test/http/issuer-keys.test.ts',
  },
  {
    name: 'each token with an unknown key makes a fetch',
    at: 'unknown-key-cooldown',
    change: { replace: /loading .*;/, by: 'UNKNOWN_KEY_MS > 0 && triedAtMs < nowMs();' },
    test: 'test/http/issuer-keys.test.ts',
  },
  {
    name: 'a live stream goes on without a good token',
    at: 'stream-expiry',
    change: { replace: /Math\.min\(.*\)/, by: 'TIMER_MS_MAX)' },
    test: 'test/audit/stream-expiry.test.ts',
  },
  {
    name: "a dot between the digits hides a request's own card number",
    at: 'clothed-number',
    change: { replace: /digitRuns\(.*\)\.some/, by: '[{ digits: text }].some' },
    test: 'test/http/card-in-request.test.ts',
  },
  {
    name: 'the first of two card numbers may stand in a name',
    at: 'spelled-number',
    change: { replace: /spelledNumbers\(.*\)/, by: '[] as string[]' },
    test: 'test/http/card-in-request.test.ts',
  },
  {
    name: 'a body that holds the card number twice is not searched',
    at: 'number-alone',
    change: 'delete',
    test: 'test/http/sole-number.test.ts',
  },
  {
    name: 'an event with an unknown field is stored',
    at: 'compiled-strictness',
    change: 'delete',
    test: 'test/runtime/compiled-schema.test.ts',
  },
  {
    name: 'a card number in a reference gets onto a topic',
    at: 'topic-mask',
    change: 'delete',
    test: 'test/projector/topics.test.ts',
  },
  {
    name: 'the card number may stand in the reason of a refund',
    at: 'card-in-change',
    change: { replace: /\(\w+,/, by: '([],' },
    test: 'test/http/capture-void-refund.test.ts',
  },
];

const STORE: SeededBug[] = [
  {
    name: 'SQLite: a commit does not wait for the disk',
    at: 'commit-on-disk',
    change: { replace: /synchronous = FULL/, by: 'synchronous = NORMAL' },
    test: 'test/e2e/failing-disk.test.ts',
  },
  {
    name: 'SQLite: an append goes to the end of its stream, whatever was expected',
    at: 'append-expected',
    change: {
      replace: /return .*/,
      by: 'if (head) job.revision = head.revision; return head?.id;',
    },
    test: 'test/contract/event-store/sqlite.test.ts',
  },
  {
    name: 'SQLite: the hash that an append expects is not compared',
    at: 'append-hash',
    change: without(/ && head\.hash .*(?=;)/),
    test: 'test/contract/event-store/sqlite.test.ts',
  },
  {
    name: 'SQLite: an append that was rolled back stays remembered',
    at: 'forget-rolled-back',
    change: 'delete',
    test: 'test/contract/event-store/sqlite-file.test.ts',
  },
  {
    name: 'SQLite: a failed fsync of the thread that moves the log is passed over',
    at: 'bulk-checkpoint-fsync',
    change: { replace: /failureOf\(.*\)/, by: 'null' },
    test: 'test/contract/event-store/sqlite-checkpoints.test.ts',
  },
  {
    name: 'SQLite: the end of the hash chain is not verified at the start',
    at: 'tail-verified',
    change: { replace: /verifyTail/, by: 'logEnd' },
    test: 'test/contract/event-store/sqlite-file.test.ts',
  },
  {
    name: 'SQLite: a failed commit counts as not stored',
    at: 'commit-of-unknown-outcome',
    change: { replace: /unknown: \w+/, by: 'unknown: false' },
    test: 'test/contract/event-store/sqlite-file.test.ts',
  },
  {
    name: 'SQLite: writing goes on after a failed fsync',
    at: 'stop-after-fsync',
    change: 'delete',
    test: 'test/contract/event-store/sqlite-file.test.ts',
  },
  {
    name: 'EventStoreDB: an append expects any revision',
    at: 'eventstoredb-batch-expected',
    change: { replace: /to\.number\(2, after\)/, by: 'to.message(4, () => undefined)' },
    test: 'test/contract/event-store/eventstoredb-batches.test.ts',
  },
  {
    name: 'EventStoreDB: an append to an old server expects any revision',
    at: 'eventstoredb-expected',
    change: { replace: /BigInt\(\w+\)/, by: "'any'" },
    test: 'test/contract/event-store/eventstoredb-batches.test.ts',
  },
  {
    name: 'EventStoreDB: an answer goes to whichever append waits longest',
    at: 'eventstoredb-correlation',
    change: { replace: /waiting\.get\(id\)/, by: '[...waiting.values()][0]' },
    test: 'test/contract/event-store/eventstoredb-batches.test.ts',
  },
  {
    name: 'EventStoreDB: what was under way on a broken stream counts as not stored',
    at: 'eventstoredb-broken-stream',
    change: {
      replace: /return (.*);/,
      by: "return Object.assign($1, { type: 'not-sent' });",
    },
    test: 'test/contract/event-store/eventstoredb-batches.test.ts',
  },
  {
    name: 'EventStoreDB: a subscription to some types is sent the events of all',
    at: 'types-filtered-at-server',
    change: { replace: /types === undefined/, by: 'types === undefined || true' },
    test: 'test/contract/event-store/eventstoredb-calls.test.ts',
  },
  {
    name: 'EventStoreDB: after a drop, events are sent again that nobody needed',
    at: 'passed-over-is-passed',
    change: 'delete',
    test: 'test/contract/event-store/eventstoredb-calls.test.ts',
  },
  {
    name: 'EventStoreDB: a try after a conflict takes the newer revision',
    at: 'eventstoredb-conflict',
    change: { replace: /return .*/, by: '{ after = actualRevision(error); continue; }' },
    test: 'test/contract/event-store/eventstoredb-faults.test.ts',
  },
  {
    name: 'EventStoreDB: a tombstone is taken for a server out of reach',
    at: 'tombstone-named',
    change: { replace: /'deleted'/, by: "'conflict'" },
    test: 'test/contract/event-store/eventstoredb.test.ts',
  },
  {
    name: 'EventStoreDB: a soft-deleted stream has no last revision, as if it had never been',
    at: 'soft-delete-named',
    change: 'delete',
    test: 'test/contract/event-store/eventstoredb.test.ts',
  },
  {
    name: 'EventStoreDB: a noted deletion does not bar an append',
    at: 'no-append-to-deleted',
    change: 'delete',
    test: 'test/contract/event-store/eventstoredb.test.ts',
  },
  {
    name: 'EventStoreDB: a payment is created in a deleted stream',
    at: 'new-stream-is-new',
    change: 'delete',
    test: 'test/contract/event-store/eventstoredb-removals.test.ts',
  },
  {
    name: 'a stream that begins in its middle counts as one with an unreadable event',
    at: 'stream-begins-at-zero',
    change: 'delete',
    test: 'test/contract/event-store/eventstoredb.test.ts',
  },
  {
    name: 'a payment whose stream was removed is not parked',
    at: 'removal-parks',
    change: UNCONDITIONAL,
    test: 'test/projector/removed.test.ts',
  },
  {
    name: 'a rebuild forgets that the stream of a payment was removed',
    at: 'rebuild-keeps-removed',
    change: { replace: /await/, by: 'if (next === undefined) await' },
    test: 'test/projector/removed.test.ts',
  },
  {
    name: 'a payment whose events are not whole is a fault of ours',
    at: 'not-whole-is-503',
    change: { replace: /'SERVICE_UNAVAILABLE'/, by: "'INTERNAL_ERROR'" },
    test: 'test/http/removed-payment.test.ts',
  },
  {
    name: 'a provider that holds what was deleted at the server is taken for one that is ahead',
    at: 'deleted-is-not-ahead',
    change: 'delete',
    test: 'test/http/removed-payment.test.ts',
  },
  {
    name: 'GET: a payment that was deleted in the log never existed',
    at: 'get-of-removed',
    change: 'delete',
    test: 'test/http/removed-payment.test.ts',
  },
  {
    name: 'commands: a payment that was deleted in the log never existed',
    at: 'command-on-removed',
    change: 'delete',
    test: 'test/http/removed-payment.test.ts',
  },
  {
    name: 'a payment that was seen and is gone counts as one that never was',
    at: 'known-and-gone',
    change: 'delete',
    test: 'test/memory/payment-log.test.ts',
  },
  {
    name: 'an auditor of one merchant learns that a payment of another was deleted',
    at: 'removed-of-merchant',
    change: { replace: / \|\| \(.*\)\)/, by: ')' },
    test: 'test/http/removed-payment.test.ts',
  },
  {
    name: 'verifying does not link the log',
    at: 'log-linked',
    change: 'delete',
    test: 'test/audit/tampering.test.ts',
  },
  {
    name: 'verifying the log believes what an event says of the one before it',
    at: 'known-end-of-stream',
    change: { replace: /end\.hash/, by: 'String(jsonFieldsOf(form.text).previousHash)' },
    test: 'test/domain/chain.test.ts',
  },
  {
    name: 'a capture or a refund above what there is adds up',
    at: 'sums-possible',
    change: 'delete',
    test: 'test/domain/sums.test.ts',
  },
  {
    name: 'a reconciliation compares the intent alone, not the outcome',
    at: 'amount-of-outcome',
    change: { replace: /own\.reason === undefined \?/, by: 'amount < 0 ?' },
    test: 'test/audit/reconcile.test.ts',
  },
  {
    name: 'reading a stream does not compare an event with the log before it',
    at: 'stream-linked',
    change: { replace: /link\..*/, by: 'undefined;' },
    test: 'test/contract/event-store/sqlite-file.test.ts',
  },
  {
    name: 'reading a stream does not compare an event with the one before it',
    at: 'stream-chained',
    change: { replace: / = .*/, by: ' = undefined as string | undefined;' },
    test: 'test/contract/event-store/sqlite-file.test.ts',
  },
  {
    name: "an export's last line is not compared with the head of its manifest",
    at: 'manifest-head',
    change: without(/ \?\? .*(?=;)/),
    test: 'test/audit/tampering.test.ts',
  },
  {
    name: "an export's chain is not compared with its manifest",
    at: 'manifest-chain',
    change: 'delete',
    test: 'test/audit/tampering.test.ts',
  },
];

const READ_MODELS: SeededBug[] = [
  {
    name: 'a log whose last events are gone verifies',
    at: 'verified-to-the-end',
    change: { replace: /return .*/, by: 'return walked;' },
    test: 'test/audit/tampering.test.ts',
  },
  {
    name: 'a generation that only some threads have filled to its end is made whole',
    at: 'shares-filled-whole',
    change: { replace: /ended\.length < of .* until\)/, by: 'of === 0' },
    test: 'test/projector/rebuild-thread.test.ts',
  },
  {
    name: 'a break that one of several threads has met is dropped',
    at: 'break-in-a-share',
    change: { replace: /if .*\) return/, by: 'return' },
    test: 'test/contract/event-store/sqlite-shares.test.ts',
  },
  {
    name: 'some streams are in no share, and nobody verifies them',
    at: 'every-stream-taken',
    change: { replace: /=== index/, by: '=== 0 && index === 0' },
    test: 'test/contract/event-store/sqlite-shares.test.ts',
  },
  {
    name: 'a page of the log that is full is never the last one',
    at: 'page-at-end',
    change: { replace: /next === end \|\| /, by: '' },
    test: 'test/contract/event-store/memory.test.ts',
  },
  {
    name: 'EventStoreDB: each request for health is a question to the server',
    at: 'health-asks-once',
    change: { replace: /shareCall\(/, by: '((call: () => Promise<void>, _ms: number) => call)(' },
    test: 'test/contract/event-store/eventstoredb-calls.test.ts',
  },
  {
    name: 'EventStoreDB: a server that stands still holds up the close, and so the exit',
    at: 'close-gives-up',
    change: { replace: /CLOSE_MS_MAX/, by: '60_000' },
    test: 'test/contract/event-store/eventstoredb-faults.test.ts',
  },
  {
    name: 'EventStoreDB: health reads the whole log',
    at: 'health-reads-a-stream',
    change: { replace: /client\.readStream\(.*?\)/, by: 'client.readAll({ maxCount: 1 })' },
    test: 'test/contract/event-store/eventstoredb-calls.test.ts',
  },
  {
    name: "EventStoreDB: the server's own events after the end are read again each time",
    at: 'end-remembered',
    change: { replace: /seen !== undefined && .*;/, by: 'seen === undefined && from === seen;' },
    test: 'test/contract/event-store/eventstoredb-calls.test.ts',
  },
  {
    name: 'Stripe: the end of the ledger is looked for on the first page of each list alone',
    at: 'stripe-end-pages',
    change: { replace: /entries\.length >= limit/, by: 'true' },
    test: 'test/contract/provider/stripe-rules.test.ts',
  },
  {
    name: 'a page of a scan without a response ends the scan',
    at: 'page-read-once',
    change: { replace: /tries === TRIES_MAX/, by: 'true' },
    test: 'test/contract/event-store/eventstoredb-faults.test.ts',
  },
  {
    name: 'EventStoreDB: a count that ended early is taken for the number of events',
    at: 'counted-so-far',
    change: { replace: /isExact: .*?,/, by: 'isExact: true,' },
    test: 'test/contract/event-store/eventstoredb.test.ts',
  },
  {
    name: 'the projector follows another log than the one its documents were made of',
    at: 'same-log',
    change: { replace: /=== null(?=\) return)/, by: '!== undefined' },
    test: 'test/projector/compose.test.ts',
  },
  {
    name: 'a break that the scheduled verification finds is in no log line',
    at: 'break-is-logged',
    change: 'delete',
    test: 'test/projector/verification.test.ts',
  },
  {
    name: 'a restart takes back that the log is broken',
    at: 'broken-stays',
    change: 'delete',
    test: 'test/projector/verification.test.ts',
  },
  {
    name: 'the signature of a seal is not checked',
    at: 'seal-signature',
    change: 'delete',
    test: 'test/domain/seals.test.ts',
  },
  {
    name: 'a key follows that the old one never signed',
    at: 'rotation-old-signature',
    change: { replace: /!isSigned\(.*\)\)/, by: 'false)' },
    test: 'test/domain/seals.test.ts',
  },
  {
    name: 'a change of the key is taken that the new key never signed',
    at: 'rotation-new-signature',
    change: { replace: /!isSigned\(.*\)\)/, by: 'false)' },
    test: 'test/domain/seals.test.ts',
  },
  {
    name: 'a start goes on with another key than the last one of the log',
    at: 'own-key-is-last',
    change: { replace: /publicKey !== own/, by: 'false' },
    test: 'test/projector/sealing-key.test.ts',
  },
  {
    name: 'seals of keys that nobody trusts are taken',
    at: 'seals-of-trusted-key',
    change: { replace: /keys\.has\(trusted\)/, by: 'true' },
    test: 'test/projector/sealing-key.test.ts',
  },
  {
    name: 'a next key that the log does not name takes the place of the key',
    at: 'next-key-is-recorded',
    change: { replace: /return .*/, by: 'return true;' },
    test: 'test/projector/sealing-key.test.ts',
  },
  {
    name: 'the log names a key that no file holds yet',
    at: 'next-key-durable-first',
    change: 'delete',
    test: 'test/projector/sealing-key.test.ts',
  },
  {
    name: 'an export without seals passes for one that a key has proven',
    at: 'key-without-seals',
    change: { replace: /seals === 0/, by: 'seals === -1' },
    test: 'test/cli/keys.test.ts',
  },
  {
    name: 'the last seal is not checked at the start',
    at: 'seal-at-start',
    change: { replace: /misfit !== undefined/, by: "misfit !== undefined && headFile === ''" },
    test: 'test/projector/seals.test.ts',
  },
  {
    name: 'a verification passes over seals that do not fit',
    at: 'seal-verified',
    change: { replace: /sealEventReason\(.*\)/, by: 'undefined' },
    test: 'test/projector/seals.test.ts',
  },
  {
    name: 'who takes over reads the whole log again in place of what follows the last seal',
    at: 'takes-over-from-seal',
    change: { replace: /startAt\(seal/, by: 'startAt(undefined' },
    test: 'test/projector/sealed-logs.test.ts',
  },
  {
    name: 'a log is sealed again before its last seal has come by',
    at: 'seals-after-its-last-seal',
    change: { replace: /reached\?\.isPast !== true/, by: 'reached === undefined' },
    test: 'test/projector/running-hash.test.ts',
  },
  {
    name: 'a log is sealed where no verification looks for the place any more',
    at: 'seals-near-the-end',
    change: { replace: /=== NEAR_END/, by: '< 0' },
    test: 'test/projector/running-hash.test.ts',
  },
  {
    name: 'a log that was changed before the checkpoint passes where the server keeps no log hash',
    at: 'carried-hash-fits',
    change: {
      replace: /\(await carried\?\.\(checkpoint\)\) === hash/,
      by: 'carried !== undefined',
    },
    test: 'test/projector/sealed-logs.test.ts',
  },
  {
    name: 'a verification does not name the payment that the log lost',
    at: 'cut-payment-is-named',
    change: { replace: /\(last \?\? -1\)/, by: '(last ?? row.revision)' },
    test: 'test/projector/sealed-logs.test.ts',
  },
  {
    name: 'a copy of an earlier seal is taken for a later one',
    at: 'seal-place',
    change: { replace: /last !== .*;/, by: 'false;' },
    test: 'test/domain/seals.test.ts',
  },
  {
    name: 'a verification does not notice that seals are missing',
    at: 'seal-missing',
    change: { replace: /return .*/, by: 'return undefined;' },
    test: 'test/domain/seals.test.ts',
  },
  {
    name: 'a log without the seal of the kept head starts',
    at: 'kept-head-has-seal',
    change: { replace: /check\.seals\.some\(.*\)(?=;)/, by: 'true' },
    test: 'test/projector/seals.test.ts',
  },
  {
    name: 'a checkpoint of two topics is taken for one with another count of the third',
    at: 'third-topic-count',
    change: { replace: /stored\.partitions\.seals \?\? seals/, by: '0' },
    test: 'test/projector/relay.test.ts',
  },
  {
    name: 'a kept head of another log is taken for one of this log',
    at: 'kept-head-of-log',
    change: 'delete',
    test: 'test/audit/routes.test.ts',
  },
  {
    name: 'a checkpoint keeps the hash of one event, not that of the log',
    at: 'checkpoint-log-hash',
    change: 'delete',
    test: 'test/projector/log-check.test.ts',
  },
  {
    name: 'a parked payment is sent again without a note that it is under way',
    at: 'parked-named-first',
    change: 'delete',
    test: 'test/contract/relay-retry/memory.test.ts',
  },
  {
    name: 'the log goes on while a parked payment is without acknowledgement',
    at: 'parked-finished-first',
    change: 'delete',
    test: 'test/contract/relay-retry/memory.test.ts',
  },
  {
    name: 'the relay forgets which log it has sent',
    at: 'relay-log',
    change: 'delete',
    test: 'test/projector/relay.test.ts',
  },
  {
    name: 'GET gives the document that it read before the last event',
    at: 'written-document-forgotten',
    change: 'delete',
    test: 'test/contract/read-models/sqlite.test.ts',
  },
  {
    name: "the read models' log is moved into a file that is being replaced",
    at: 'replaced-while-moved',
    change: 'delete',
    test: 'test/contract/read-models/sqlite-wal-moves.test.ts',
  },
  {
    name: 'an older read model is written over a newer one',
    at: 'newer-revision',
    change: without(/\n\s*WHERE excluded.*(?=`)/),
    test: 'test/contract/read-models/sqlite.test.ts',
  },
  {
    name: 'the projection takes an event that its document has already',
    at: 'already-applied',
    change: 'delete',
    test: 'test/projector/projection.test.ts',
  },
  {
    name: 'the checkpoint passes a new payment that is held',
    at: 'held-before-checkpoint',
    change: { replace: /newPayments\.before\(payments\) \?\? end/, by: 'end' },
    test: 'test/projector/new-payments.test.ts',
  },
  {
    name: 'the checkpoint passes a batch whose write has failed',
    at: 'failed-batch-taken-back',
    change: 'delete',
    test: 'test/projector/new-payments.test.ts',
  },
  {
    name: 'a new payment that is held counts as shown',
    at: 'held-is-behind',
    change: without(/ \|\| newPayments\.has\(paymentId\)/),
    test: 'test/projector/new-payments.test.ts',
  },
  {
    name: 'a gap in the events of a payment is not healed',
    at: 'gap-healed',
    change: { replace: /revision === .* \? (.*) : .*(?=;)/, by: '$1' },
    test: 'test/projector/projection.test.ts',
  },
  {
    name: 'the checkpoint is moved by whoever comes',
    at: 'checkpoint-compared',
    change: { replace: /!== 1/, by: '> 1' },
    test: 'test/contract/read-models/sqlite.test.ts',
  },
  {
    name: 'a rebuild serves read models without their indexes, and not on the disk',
    at: 'filled-made-whole',
    change: 'delete',
    test: 'test/projector/rebuild-thread.test.ts',
  },
  {
    name: 'new read models are compared as they were before their last events',
    at: 'early-checksum-forgotten',
    change: 'delete',
    test: 'test/contract/read-models/sqlite-generation.test.ts',
  },
  {
    name: 'one event that cannot be applied stops all',
    at: 'poison-parks-one',
    change: { replace: /return .*/, by: 'throw error;' },
    test: 'test/projector/projection.test.ts',
  },
  {
    name: 'no payment is ever known to be behind',
    at: 'known-behind',
    change: { replace: /return .*/, by: 'return false;' },
    test: 'test/memory/freshness.test.ts',
  },
  {
    name: 'a rebuild whose switch was not acknowledged removes the read models that are served',
    at: 'served-generation-kept',
    change: { replace: /= \(await.*(?=;)/, by: '= false' },
    test: 'test/contract/read-models/mongodb-faults.test.ts',
  },
  {
    name: 'two projectors follow the log at once',
    at: 'one-projector',
    change: { replace: /return .*/, by: 'return true;' },
    test: 'test/projector/lease.test.ts',
    needs: 'MONGODB_URL',
  },
  {
    name: 'GET gives a document that is known to be behind',
    at: 'document-fresh',
    change: without(/ && !\(await .*\)(?=\) \{)/),
    test: 'test/http/get-payment.test.ts',
  },
  {
    name: 'GET gives at once a document that is behind',
    at: 'at-once-behind',
    change: 'delete',
    test: 'test/http/get-at-once.test.ts',
  },
  {
    name: 'a GET that is served at once draws on no rate',
    at: 'at-once-rate',
    change: without(/ \|\| !auth\.draw\(merchantId\)/),
    test: 'test/http/get-at-once.test.ts',
  },
  {
    name: 'the last token of a connection stays good after its end',
    at: 'last-token-good',
    change: without(/ && isGood\(last\.entry, nowMs\)/),
    test: 'test/http/tokens.test.ts',
  },
  {
    name: 'a connection is the one who sent its first request, whatever its token says',
    at: 'last-token-good',
    change: { replace: /last\?\.header === header/, by: 'last' },
    test: 'test/http/tokens.test.ts',
  },
  {
    name: 'a GET that is served at once needs no scope',
    at: 'at-once-scope',
    change: without(/ && mayUse\(principal, scope\)/),
    test: 'test/http/get-at-once.test.ts',
  },
  {
    name: 'GET gives the document of a parked payment',
    at: 'document-fresh',
    change: without(/ && !\w+\.parked/),
    test: 'test/http/get-payment.test.ts',
  },
  {
    name: 'a connection that MongoDB has ended is a fault of ours',
    at: 'broken-socket-is-gone',
    change: 'delete',
    test: 'test/contract/read-models/mongodb-client.test.ts',
  },
  {
    name: 'a GET takes a look at the log that began before the GET came',
    at: 'look-after-the-get',
    change: 'delete',
    test: 'test/memory/behind.test.ts',
  },
  {
    name: 'a GET gets a document of MongoDB that was read before the GET came',
    at: 'look-up-after-it-came',
    change: 'delete',
    test: 'test/contract/read-models/mongodb-look-ups.test.ts',
  },
  {
    name: 'a look that ended before the end of the log counts as one at its end',
    at: 'look-to-the-end',
    change: 'delete',
    test: 'test/memory/behind.test.ts',
  },
  {
    name: 'documents that are ahead of a restored log count as up to date',
    at: 'look-at-own-log',
    change: 'delete',
    test: 'test/memory/behind.test.ts',
  },
  {
    name: 'a payment with events after the checkpoint is not behind',
    at: 'behind-the-look',
    change: { replace: /return .*/, by: 'return false;' },
    test: 'test/memory/behind.test.ts',
  },
];

const TRACES: SeededBug[] = [
  {
    name: 'a trace goes on with ids that could be a card number',
    at: 'traceparent-card',
    change: 'delete',
    test: 'test/http/traces.test.ts',
  },
  {
    name: 'spans hold a card number that a client put into an address',
    at: 'span-attribute-card',
    change: { replace: /withoutLongNumbers\(value\)/, by: 'value' },
    test: 'test/http/traces.test.ts',
  },
  {
    name: "a client's flag decides that its trace is kept",
    at: 'sampled-by-client',
    change: { replace: /, remoteParentSampled: byRatio/, by: '' },
    test: 'test/http/traces.test.ts',
  },
  {
    name: 'messages of the topics do not say which trace they belong to',
    at: 'stored-traceparent',
    change: 'delete',
    test: 'test/http/traces.test.ts',
  },
];

const EVENT_FEED: SeededBug[] = [
  {
    name: 'the checkpoint of the relay is saved before the broker has the messages',
    at: 'publish-before-save',
    change: { before: 'if (!(await checkpoint.save(next))) throw overtaken();' },
    test: 'test/projector/relay.test.ts',
  },
  {
    name: 'all partitions count together',
    at: 'count-by-partition',
    change: { replace: /^(\s*)(\w+)\[\w+\]/, by: '$1for (const at of $2.keys()) $2[at]' },
    test: 'test/projector/relay.test.ts',
  },
  {
    name: 'a relay that was overtaken still moves the checkpoint',
    at: 'checkpoint-version',
    change: 'delete',
    test: 'test/contract/key-document/file.test.ts',
  },
];

const PROVIDER_AND_LIMITS: SeededBug[] = [
  {
    name: 'the stand-alone provider answers before its ledger is on the disk',
    at: 'provider-on-disk',
    change: { replace: /'FULL'/, by: "'NORMAL'" },
    test: 'test/processes/provider-process.test.ts',
  },
  {
    name: 'an engine on another host is reached in plain text without a word',
    at: 'plaintext-refused',
    change: { replace: /PLAINTEXT_RULES\[engine\]\.isPlain\(parsed\)/, by: 'false' },
    test: 'test/config/plain-text.test.ts',
  },
  {
    name: "the provider's answer for another amount is taken",
    at: 'same-operation-answered',
    change: without(/\w+ === \S+amount &&/),
    test: 'test/contract/provider/http-faults.test.ts',
  },
  {
    name: "the provider's answer about another operation is taken",
    at: 'same-operation-answered',
    change: without(/\w+ === \S+operationId &&/),
    test: 'test/contract/provider/http-faults.test.ts',
  },
  {
    name: "the provider's redirects are followed",
    at: 'no-redirects',
    change: {
      replace: /(\w+)\.request\(\{/,
      by: `$1.compose((await import('undici')).interceptors.redirect({ maxRedirections: 3 }))
        .request({ origin,`,
    },
    test: 'test/contract/provider/http-faults.test.ts',
  },
  {
    name: 'a time-out counts as never sent',
    at: 'time-out-was-sent',
    change: { replace: /sent: true/, by: 'sent: false' },
    test: 'test/contract/provider/http-faults.test.ts',
  },
  {
    name: "a provider's answer may have any size",
    at: 'response-size',
    change: 'delete',
    test: 'test/contract/provider/http-faults.test.ts',
  },
  {
    name: "of two equal keys in a provider's answer the last one counts",
    at: 'answer-key-twice',
    change: { replace: /keysKept\(.*\) \? /, by: 'true ? ' },
    test: 'test/contract/provider/http-faults.test.ts',
  },
  {
    name: 'the command line lets a stored text hide what follows',
    at: 'own-styles-alone',
    change: { replace: /OWN_SEQUENCES\.has\(part\)/, by: 'SEQUENCE.test(part)' },
    test: 'test/cli/output.test.ts',
  },
  {
    name: 'a client that does not read its response keeps it for ever',
    at: 'stalled-client',
    change: 'delete',
    test: 'test/http/framework-rejections.test.ts',
  },
  {
    name: 'each address of an IPv6 network may send its own number of bad tokens',
    at: 'sender-network',
    change: { replace: /if \(.*\) (?=return)/, by: '' },
    test: 'test/http/rate-limit.test.ts',
  },
  {
    name: 'the breaker never opens',
    at: 'breaker-opens',
    change: { replace: /FAILURES_TO_OPEN/, by: 'Number.POSITIVE_INFINITY' },
    test: 'test/contract/provider/resilience.test.ts',
  },
  {
    name: 'a test card, or a fence, opens the breaker for other payments',
    at: 'breaker-counts',
    change: without(/ \|\| outcome\.byProvider === true/),
    test: 'test/contract/provider/simulator.test.ts',
  },
  {
    name: 'any number of calls is at the provider at once',
    at: 'calls-at-once',
    change: { replace: /\(\w+/, by: '(Number.MAX_SAFE_INTEGER' },
    test: 'test/contract/provider/resilience.test.ts',
  },
  {
    name: 'a call that failed under way counts as never sent',
    at: 'failed-under-way',
    change: without(/\w+ \? .* : /),
    test: 'test/contract/provider/resilience.test.ts',
  },
  {
    name: 'the cap on requests at once is ignored',
    at: 'requests-at-once',
    change: { replace: /(> \w+ && )!/, by: '$1' },
    test: 'test/http/framework-rejections.test.ts',
  },
  {
    name: 'notices without a signature take every place',
    at: 'unsigned-bodies',
    change: { replace: /arriving >= bodiesMax/, by: 'false' },
    test: 'test/http/unsigned-notices.test.ts',
  },
  {
    name: 'a stop closes idle connections before what arrived on them is read',
    at: 'stop-reads-first',
    change: 'delete',
    test: 'test/http/framework-rejections.test.ts',
  },
  {
    name: 'a stop closes a connection whose request has arrived and was not read',
    at: 'stop-reads-unused',
    change: 'delete',
    test: 'test/http/framework-rejections.test.ts',
  },
  {
    name: 'a search that ended early goes on after the oldest payment that it looked at',
    at: 'searched-to-newest',
    change: { replace: /isNewer\(end, searchedTo\)/, by: 'isNewer(searchedTo, end)' },
    test: 'test/contract/read-models/sqlite-search.test.ts',
  },
  {
    name: 'a body may have a megabyte',
    at: 'body-limit',
    change: 'delete',
    test: 'test/http/framework-rejections.test.ts',
  },
  {
    name: 'the rate of a merchant is never drawn on',
    at: 'rate-drawn',
    change: { replace: /= .*(?=;)/, by: '= undefined' },
    test: 'test/http/auth-hooks.test.ts',
  },
];

const DELIVERY = 'test/webhooks/delivery.test.ts';
const DELIVERER = 'test/webhooks/deliverer.test.ts';
const DELIVERER_THREAD = 'test/webhooks/thread.test.ts';
const MESSAGES = 'test/webhooks/messages.test.ts';
const ADDRESSES = 'test/webhooks/addresses.test.ts';

const WEBHOOKS: SeededBug[] = [
  {
    name: 'webhooks: a later revision overtakes one that is being sent',
    at: 'webhook-order',
    change: { replace: / && !blocked.has\(paymentId\)/, by: '' },
    test: DELIVERY,
  },
  {
    name: 'webhooks: a failing endpoint gets requests without a pause',
    at: 'failing-one-at-a-time',
    change: 'delete',
    test: DELIVERY,
  },
  {
    name: 'webhooks: a later revision of a retrying payment is forgotten',
    at: 'webhook-later-revision',
    change: 'delete',
    test: DELIVERY,
  },
  {
    name: 'webhooks: a message is tried for ever',
    at: 'webhook-given-up',
    change: { replace: / \|\| n >= ATTEMPTS_OF_ONE_MAX/, by: '' },
    test: DELIVERY,
  },
  {
    name: 'webhooks: an endpoint that never accepts anything stays enabled',
    at: 'disabled-after',
    change: { replace: /nowMs - failingSince >= DISABLED_AFTER_MS/, by: 'nowMs < failingSince' },
    test: DELIVERER,
  },
  {
    name: 'webhooks: a request of a merchant is followed again after each restart',
    at: 'command-followed-once',
    change: { replace: /recorded\.revision <= delivery\.row\.commands \|\| /, by: '' },
    test: DELIVERY,
  },
  {
    name: 'webhooks: who takes over sends beside the last requests of the other',
    at: 'takeover-waits',
    change: 'delete',
    test: DELIVERER,
  },
  {
    name: 'webhooks: a log that was written anew is sent from',
    at: 'webhook-log-fits',
    change: 'delete',
    test: DELIVERER,
  },
  {
    name: 'webhooks: an overtaken deliverer goes on',
    at: 'delivery-overtaken',
    change: { replace: /throw new Overtaken\(.*\)/, by: 'return' },
    test: DELIVERER,
  },
  {
    name: 'webhooks: the thread of the deliverer takes the CPU from requests',
    at: 'thread-priority',
    change: 'delete',
    test: DELIVERER_THREAD,
  },
  {
    name: 'webhooks: in its thread the deliverer takes a conflict or an unknown outcome for any error',
    at: 'thread-append-errors',
    change: { replace: /OfCode === undefined \? error : new OfCode\(message\)/, by: 'error' },
    test: DELIVERER_THREAD,
  },
  {
    name: 'webhooks: a message may be there before the service knows of its event',
    at: 'thread-reads-announced',
    change: without(/, end(?=\))/),
    test: 'test/webhooks/followed-log.test.ts',
  },
  {
    name: 'webhooks: a row is changed by a writer that did not see its last change',
    at: 'delivery-version',
    change: 'delete',
    test: 'test/contract/delivery-store/sqlite.test.ts',
  },
  {
    name: 'webhooks: the checkpoint passes what is being sent, so that a crash loses it',
    at: 'checkpoint-behind-waiting',
    change: { replace: /state !== 'done'/, by: "state === 'waiting'" },
    test: DELIVERY,
  },
  {
    name: 'webhooks: outcomes are not saved while others are under way, so that a crash repeats them all',
    at: 'outcomes-saved',
    change: { replace: / && attempts\.length < UNSAVED_MAX/, by: '' },
    test: DELIVERER,
  },
  {
    name: 'webhooks: a revision is sent with the body of another one',
    at: 'message-of-revision',
    change: { replace: /@\$\{revision\}/, by: '' },
    test: DELIVERER,
  },
  {
    name: 'webhooks: the signature leaves out the body',
    at: 'webhook-body-signed',
    change: { replace: /\.\$\{body\}/, by: '' },
    test: MESSAGES,
  },
  {
    name: 'webhooks: private addresses are taken for public ones',
    at: 'public-addresses-only',
    change: { replace: /isPublic \?/, by: 'isPublic || true ?' },
    test: ADDRESSES,
  },
  {
    name: 'webhooks: one public address of a name is enough',
    at: 'every-address-allowed',
    change: { replace: /found\.every/, by: 'found.some' },
    test: ADDRESSES,
  },
  {
    name: 'webhooks: a literal address is not looked at',
    at: 'literal-address-allowed',
    change: { replace: / \|\| \(isIP.*\)\) \{/, by: ') {' },
    test: ADDRESSES,
  },
  {
    name: 'webhooks: messages are signed by one of two secrets alone',
    at: 'webhook-signed-by-each',
    change: { replace: /signatures\.join\(' '\)/, by: "signatures[0] ?? ''" },
    test: MESSAGES,
  },
  {
    name: 'webhooks: an old secret signs for ever',
    at: 'old-secret-expires',
    change: { replace: / && Date\.parse\(oldSecretExpiresAt\) > nowMs/, by: '' },
    test: MESSAGES,
  },
  {
    name: 'webhooks: a merchant has as many endpoints as it likes',
    at: 'endpoints-limited',
    change: 'delete',
    test: MESSAGES,
  },
  {
    name: 'webhooks: the authorization of a sale is sent, which GET never shows',
    at: 'sale-authorization-unsent',
    change: { replace: /type === .* : /, by: '' },
    test: MESSAGES,
  },
  {
    name: 'webhooks: another secret signs than merchants were shown',
    at: 'webhook-secret-checked',
    change: 'delete',
    test: MESSAGES,
  },
  {
    name: 'webhooks: an address may hold a card number behind escapes',
    at: 'escaped-card-in-url',
    change: { replace: /\|\| looksLikeCard\(decoded\(url\)\) /, by: '' },
    test: 'test/webhooks/endpoints.test.ts',
  },
  {
    name: 'webhooks: whoever listens gets the payments of all merchants',
    at: 'listen-of-merchant',
    change: 'delete',
    test: 'test/webhooks/listen.test.ts',
  },
  {
    name: 'webhooks: an auditor sees the parameters of an address',
    at: 'webhook-url-cut',
    change: { replace: /\.replace\(.*\)/, by: '' },
    test: 'test/webhooks/endpoints.test.ts',
  },
];

export const SEEDED_BUGS: readonly SeededBug[] = [
  ...WEBHOOKS,
  ...INTENT_AND_PROVIDER,
  ...STRIPE,
  ...RECOVERY,
  ...RULES,
  ...IDEMPOTENCY,
  ...MERCHANTS_AND_TOKENS,
  ...CARDS_AND_LOGS,
  ...STORE,
  ...READ_MODELS,
  ...TRACES,
  ...EVENT_FEED,
  ...PROVIDER_AND_LIMITS,
];

/** What no test notices, and why not. */
export const UNNOTICED: readonly UnnoticedBug[] = [
  {
    name: 'webhooks: the address that was connected to is not looked at',
    at: 'connected-address-allowed',
    change: { replace: /mayReach\(.*\)\)/, by: 'true)' },
    reason:
      'changes nothing while the client connects to the addresses that it was given; it is there for a client that does not',
  },
  {
    name: 'the relay checkpoint is renamed before it is on the disk',
    at: 'synced-before-rename',
    change: 'delete',
    reason: 'only a power failure takes what the system still holds, and a killed process is none',
  },
  {
    name: 'EventStoreDB: a stream is read from any node of a cluster',
    at: 'read-from-leader',
    change: { replace: /\{ requiresLeader: true \}/, by: '{}' },
    reason:
      'a node that lags behind its leader takes a cluster of three, and the tests have one node',
  },
  {
    name: 'the relay sends past an event that is held back',
    at: 'held-back',
    change: 'delete',
    reason:
      'changes nothing: without the event that is held back those after it cannot be folded, and that holds them back as well',
  },
  {
    name: 'a token need not have an exp',
    at: 'exp-required',
    change: 'delete',
    reason: 'changes nothing: the line that refuses what is no finite number refuses this too',
  },
  {
    name: 'a secret verifies whatever algorithm the token names',
    at: 'secret-algorithm',
    change: { replace: /\[SECRET_ALGORITHM\]/, by: "['HS256', 'HS384', 'HS512']" },
    reason:
      'changes nothing: the key is made for HS256 alone, and checking by another algorithm fails',
  },
];
