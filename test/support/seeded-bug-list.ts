/**
 * The mistakes that the suite has to notice, by what they would break, each with the smallest test
 * file that does; and those that no test can notice, with the reason.
 */
import type { SeededBug } from './seeded-bugs.ts';

const INTENT_AND_PROVIDER: SeededBug[] = [
  {
    name: 'create: the provider is asked before the intent is stored',
    file: 'command-api/create-payment.ts',
    find: '    const executed = await intend(',
    put: `    const { request } = attempt;
    const { captureNow, details, currency } = request;
    await room.provider.execute({
      kind: captureNow ? 'SALE' : 'AUTHORIZE',
      operationId: command.operationId,
      paymentId,
      amount: Number(request.amount),
      currency,
      card: new CardSecret(request.card),
      descriptor: details.descriptor,
    });
    const executed = await intend(`,
    tests: ['test/processes/several-processes.test.ts'],
  },
  {
    name: 'the provider is asked under another operation id than the intent has',
    file: 'command-api/operate.ts',
    find: 'provider.execute({ operationId, paymentId',
    put: 'provider.execute({ operationId: crypto.randomUUID(), paymentId',
    tests: ['test/recovery/unknown-outcomes.test.ts'],
  },
  {
    name: 'an append of unknown outcome is repeated with new event ids',
    file: 'command-api/payment-log.ts',
    find: 'return await store.append(streamOf(paymentId), expected, events);',
    put: `const fresh = events.map((event) => ({ ...event, id: newEventId() }));
        return await store.append(streamOf(paymentId), expected, fresh);`,
    tests: ['test/processes/several-processes.test.ts'],
  },
  {
    name: 'a conflict of revisions is not decided again',
    file: 'command-api/payment-log.ts',
    find: '          if (!(error instanceof RevisionConflict)) throw error;\n',
    put: '          if (error instanceof RevisionConflict) throw error;\n',
    tests: ['test/processes/several-processes.test.ts'],
  },
  {
    name: 'a call past the budget is sent all the same',
    file: 'command-api/operate.ts',
    find: "  if (budget.spent === true) return { outcome: 'NOT_SENT' };\n",
    put: '',
    tests: ['test/processes/several-processes.test.ts'],
  },
  {
    name: 'a call is begun when others no longer wait for it',
    file: 'command-api/operate.ts',
    find: "  if (recovery.isTooLate(payment, operation)) return { outcome: 'NOT_SENT' };\n",
    put: '',
    tests: ['test/processes/several-processes.test.ts'],
  },
  {
    name: 'the time of an event may run backwards',
    file: 'command-api/payment-log.ts',
    find: 'const time = now < last ? last : now;',
    put: 'const time = now;',
    tests: ['test/processes/several-processes.test.ts'],
  },
];

const RECOVERY: SeededBug[] = [
  {
    name: 'recovery asks about another operation of the payment',
    file: 'command-api/recovery/recovery.ts',
    find: '= { operationId, amount, currency: state.currency };',
    put: `= {
      operationId: state.operations[0]?.operationId ?? operationId,
      amount,
      currency: state.currency,
    };`,
    tests: ['test/recovery/unknown-outcomes.test.ts'],
  },
  {
    name: 'a bare "not found" is believed without the fence',
    file: 'command-api/recovery/recovery.ts',
    find: "const answer = found.outcome === 'NOT_FOUND' ? await provider.fence(question) : found;",
    put: "const answer = found.outcome === 'NOT_FOUND' ? ({ outcome: 'FENCED' } as const) : found;",
    tests: ['test/recovery/unknown-outcomes.test.ts'],
  },
  {
    name: 'what was not found is never fenced, and stays open',
    file: 'command-api/recovery/recovery.ts',
    find: "const answer = found.outcome === 'NOT_FOUND' ? await provider.fence(question) : found;",
    put: 'const answer = found;',
    tests: ['test/recovery/recovery.test.ts'],
  },
  {
    name: 'an unknown outcome is closed as failed',
    file: 'command-api/recovery/recovery.ts',
    find: "    case 'UNKNOWN':\n      return undefined;",
    put: "      return undefined;\n    case 'UNKNOWN':\n      return { outcome: 'NOT_SENT' };",
    tests: ['test/cli/resolve.test.ts'],
  },
  {
    name: "another process's live operation is asked about at once",
    file: 'command-api/recovery/recovery.ts',
    find: 'if (ended.get(payment.state.paymentId)?.has(open.operationId)) return 0;',
    put: 'return 0;',
    tests: ['test/processes/several-processes.test.ts'],
  },
  {
    name: 'recovery gives up after the last wait',
    file: 'command-api/recovery/retry-schedule.ts',
    find: '    retry schedule.tries += 1;\n',
    put: '    retry schedule.tries += 1;\n    if (retry schedule.tries > delaysMs.length) return end(paymentId);\n',
    tests: ['test/recovery/recovery.test.ts'],
  },
  {
    name: 'the sweep does not read what came after the checkpoint',
    file: 'command-api/recovery/sweep.ts',
    find: 'const logged = await readLog(await startOf(checkpoint));',
    put: 'const logged = new Map();',
    tests: ['test/recovery/recovery.test.ts'],
  },
  {
    name: 'the sweep overlooks parked payments',
    file: 'command-api/recovery/sweep.ts',
    find: ', ...(await read models.parked(RETRY_SCHEDULES_MAX))',
    put: '',
    tests: ['test/recovery/recovery.test.ts'],
  },
  {
    name: 'a person may end what the provider still answers for',
    file: 'command-api/operator/resolve.ts',
    find: 'const answered = await room.recovery.ask(payment, open);',
    put: 'const answered = undefined;',
    tests: ['test/recovery/resolve.test.ts'],
  },
];

const RULES: SeededBug[] = [
  {
    name: 'refunds have no ceiling',
    file: 'shared/payment/decide.ts',
    find: ' || amount > left',
    put: '',
    tests: ['test/domain/decide.test.ts'],
  },
  {
    name: 'open refunds reserve nothing',
    file: 'shared/payment/decide.ts',
    find: ' - reserved;',
    put: ';',
    tests: ['test/domain/decide.test.ts'],
  },
  {
    name: 'more may be captured than was authorized',
    file: 'shared/payment/decide.ts',
    find: ' || amount > state.authorizedAmount',
    put: '',
    tests: ['test/domain/decide.test.ts'],
  },
  {
    name: 'a captured payment may be voided',
    file: 'shared/payment/decide.ts',
    find: "    return refused(\n      'VOID_NOT_ALLOWED',",
    put: "    if (state.status !== 'CAPTURED') return refused(\n      'VOID_NOT_ALLOWED',",
    tests: ['test/domain/decide.test.ts'],
  },
  {
    name: 'what a partial capture releases is not recorded',
    file: 'shared/payment/decide.ts',
    find: 'releasedAmount > 0 ? { releasedAmount } : {}',
    put: '{}',
    tests: ['test/domain/decide.test.ts'],
  },
  {
    name: 'an unresolved capture or void excludes nothing',
    file: 'shared/payment/decide.ts',
    find: "(o) => o.kind !== 'refund'",
    put: "(o) => o.kind === 'create'",
    tests: ['test/domain/decide.test.ts'],
  },
  {
    name: 'a second outcome of one operation is recorded too',
    file: 'shared/payment/decide.ts',
    find: '  if (operation.outcome !== undefined) return happened();\n',
    put: '',
    tests: ['test/domain/decide.test.ts'],
  },
  {
    name: 'commands of one payment do not wait for one another',
    file: 'command-api/queues.ts',
    find: 'before === undefined ? task() : before.then(task)',
    put: 'task()',
    tests: ['test/http/idempotency.test.ts'],
  },
];

const IDEMPOTENCY: SeededBug[] = [
  {
    name: 'a change that loses the append to its own repeat elsewhere is carried out again',
    file: 'shared/payment/decide.ts',
    find: "  if (earlier !== undefined && !isFree(earlier)) return { kind: 'repeated' };\n",
    put: '',
    tests: ['test/processes/several-processes.test.ts'],
  },
  {
    name: 'a slow read takes back what was appended meanwhile',
    file: 'command-api/payment-log.ts',
    find: '    if (known !== undefined && known.events.length > payment.events.length) return;\n',
    put: '',
    tests: ['test/memory/payment-log.test.ts'],
  },
  {
    name: 'a refusal after an append of unknown outcome is taken for its outcome',
    file: 'command-api/payment-log.ts',
    find: 'else if (unknown === undefined || !(error instanceof StoreUnavailable)) throw error;',
    put: 'else throw error;',
    tests: ['test/memory/payment-log.test.ts'],
  },
  {
    name: 'create: the fingerprint leaves the amount out',
    file: 'command-api/create-payment.ts',
    find: '    amount,\n    currency,\n    captureNow,\n    details,\n    card: { bin',
    put: '    currency,\n    captureNow,\n    details,\n    card: { bin',
    tests: ['test/http/idempotency.test.ts'],
  },
  {
    name: 'capture, refund: the fingerprint leaves the amount out',
    file: 'command-api/change-payment.ts',
    find: '    amount: amount ?? null,\n',
    put: '',
    tests: ['test/http/idempotency.test.ts'],
  },
  {
    name: 'a replay does not say that it is one',
    file: 'command-api/responses.ts',
    find: ", 'idempotent-replayed': 'true'",
    put: '',
    tests: ['test/http/idempotency.test.ts'],
  },
  {
    name: 'a repeat under a key is decided anew',
    file: 'command-api/change-payment.ts',
    find: '    if (!isFree(operation)) return replayed(responseTo(payment, operation));\n',
    put: '',
    tests: ['test/http/idempotency.test.ts'],
  },
  {
    name: 'a replay has the body of now',
    file: 'command-api/responses.ts',
    find: '  const { result, revision } = operation.outcome;\n',
    put: '  const { result } = operation.outcome;\n  const revision = last;\n',
    tests: ['test/http/idempotency.test.ts'],
  },
  {
    name: 'the scope of a key leaves the merchant out',
    file: 'command-api/idempotency.ts',
    find: "hash('payment', merchantId, idempotencyKey, attempt)",
    put: "hash('payment', idempotencyKey, attempt)",
    tests: ['test/http/idempotency.test.ts'],
  },
  {
    name: 'what was fenced keeps its key',
    file: 'shared/payment/state.ts',
    find: "outcome?.result === 'NOT_SENT' || outcome?.result === 'FENCED'",
    put: "outcome?.result === 'NOT_SENT'",
    tests: ['test/http/idempotency.test.ts'],
  },
  {
    name: 'unique references: the claims are not read again after the intent',
    file: 'command-api/create-payment.ts',
    find: 'if (await stillClaims(room, command, reference)) return true;',
    put: 'return true;',
    tests: ['test/http/unique-references.test.ts'],
  },
  {
    name: 'unique references: only the last claimant is looked at',
    file: 'command-api/merchant-reference.ts',
    find: 'claims.paymentIds.filter((id) => id !== create.paymentId)',
    put: 'claims.paymentIds.slice(-1).filter((id) => id !== create.paymentId)',
    tests: ['test/http/unique-references.test.ts'],
  },
];

const MERCHANTS_AND_TOKENS: SeededBug[] = [
  {
    name: "GET folds another merchant's payment",
    file: 'query-api/get-payment.ts',
    find: 'return found?.merchantId === merchantId ? found : undefined;',
    put: 'return found;',
    tests: ['test/http/get-payment.test.ts'],
  },
  {
    name: "the read models hand out another merchant's document",
    file: 'shared/read-models/sqlite/read-models.ts',
    find: 'return document?.merchantId === merchantId ? document : undefined;',
    put: 'return document;',
    tests: ['test/contract/read-models.test.ts'],
  },
  {
    name: "commands find another merchant's payment",
    file: 'command-api/routes.ts',
    find: ' && state.merchantId === merchantId) return state',
    put: ') return state',
    tests: ['test/http/capture-void-refund.test.ts'],
  },
  {
    name: "the list has other merchants' payments",
    file: 'query-api/list-payments.ts',
    find: '{ ...search, merchantId }',
    put: 'search',
    tests: ['test/http/list-payments.test.ts'],
  },
  {
    name: "an auditor of one merchant reads another's history",
    file: 'audit/history.ts',
    find: 'only === undefined || owner === only',
    put: 'only === undefined || owner !== undefined',
    tests: ['test/audit/routes.test.ts'],
  },
  {
    name: 'the log does not say who has read a payment',
    file: 'audit/payment-routes.ts',
    find: '    await room.record(request, { action, paymentId });\n',
    put: '',
    tests: ['test/audit/routes.test.ts'],
  },
  {
    name: 'a token of all merchants may make payments',
    file: 'shared/http/auth/authenticate.ts',
    find: "merchantId !== '*' && (",
    put: '(',
    tests: ['test/http/tokens.test.ts'],
  },
  {
    name: 'a token without scopes may audit',
    file: 'shared/http/auth/authenticate.ts',
    find: 'scopes?.has(scope) === true;',
    put: 'scopes?.has(scope) !== false;',
    tests: ['test/http/tokens.test.ts'],
  },
  {
    name: 'the audience is not checked',
    file: 'shared/http/auth/authenticate.ts',
    find: '    ...(settings.audience !== undefined && { audience: settings.audience }),\n',
    put: '',
    tests: ['test/http/tokens.test.ts'],
  },
  {
    name: 'an expired token is good for five seconds more',
    file: 'shared/http/auth/authenticate.ts',
    find: '      if (Math.floor(nowMs / 1000) >= exp) return EXPIRED;\n',
    put: '',
    tests: ['test/http/tokens.test.ts'],
  },
];

const CARDS_AND_LOGS: SeededBug[] = [
  {
    name: 'the body of a request is logged',
    file: 'shared/http/server/app.ts',
    find: '        merchant: request.caller?.merchantId,\n',
    put: '        merchant: request.caller?.merchantId,\n        body: String(request.body),\n',
    tests: ['test/http/log.test.ts'],
  },
  {
    name: 'the headers of a request are logged, its token with them',
    file: 'shared/http/server/app.ts',
    find: '        merchant: request.caller?.merchantId,\n',
    put: '        merchant: request.caller?.merchantId,\n        headers: request.raw.rawHeaders,\n',
    tests: ['test/http/log.test.ts'],
  },
  {
    name: 'the path is logged in place of the route',
    file: 'shared/http/server/app.ts',
    find: "const route = request.routeOptions.url ?? 'unknown';",
    put: 'const route = request.url;',
    tests: ['test/http/log.test.ts'],
  },
  {
    name: 'the scrubber is off',
    file: 'shared/runtime/log.ts',
    find: '      hooks: { streamWrite: scrubCardNumbers },\n',
    put: '',
    tests: ['test/http/log.test.ts'],
  },
  {
    name: 'secret fields are logged',
    file: 'shared/runtime/log.ts',
    find: ', log: redacted }',
    put: ' }',
    tests: ['test/http/log.test.ts'],
  },
  {
    name: "the holder's name gets onto a topic",
    file: 'projector/event-feed/schemas.ts',
    find: '  last4: created.card.shape.last4,\n',
    put: '  last4: created.card.shape.last4,\n  holderName: created.card.shape.holderName,\n',
    tests: ['test/projector/topics.test.ts'],
  },
  {
    name: "the consumer's e-mail gets onto a topic",
    file: 'projector/event-feed/schemas.ts',
    find: '  merchantReference: details.merchantReference,\n',
    put: '  merchantReference: details.merchantReference,\n  consumer: details.consumer,\n',
    tests: ['test/projector/topics.test.ts'],
  },
  {
    name: 'the whole card goes into the event',
    file: 'command-api/create-payment.ts',
    find: '    card: masked,\n',
    put: '    card: { ...request.card, ...masked },\n',
    tests: ['test/http/create-payment.test.ts'],
  },
  {
    name: 'events take fields that no schema knows',
    file: 'shared/event-store/codec.ts',
    find: 'schemasOf(true)',
    put: 'schemasOf(false)',
    tests: ['test/domain/stored-events.test.ts'],
  },
  {
    name: 'the card number may stand in another field of a create',
    file: 'command-api/request/payment-request.ts',
    find: "if (path === 'paymentMethod.card.number' || !holdsCardNumber(text, number)) return;",
    put: 'if (path !== undefined || !holdsCardNumber(text, number)) return;',
    tests: ['test/http/create-payment.test.ts'],
  },
  {
    name: 'the card number may stand in the reason of a refund',
    file: 'command-api/routes.ts',
    find: 'if (textsHoldCard(texts, payment.bin, payment.last4)) {',
    put: 'if (textsHoldCard([], payment.bin, payment.last4)) {',
    tests: ['test/http/capture-void-refund.test.ts'],
  },
];

const STORE: SeededBug[] = [
  {
    name: 'SQLite: a commit does not wait for the disk',
    file: 'shared/event-store/sqlite/worker.ts',
    find: 'synchronous = FULL',
    put: 'synchronous = NORMAL',
    tests: ['test/e2e/failing-disk.test.ts'],
  },
  {
    name: 'SQLite: an append goes to the end of its stream, whatever was expected',
    file: 'shared/event-store/sqlite/worker.ts',
    find: '  if (revision !== job.revision || (last?.hash ?? GENESIS_HASH) !== job.hash) {\n',
    put: '  job.revision = revision;\n  if (revision !== job.revision) {\n',
    tests: ['test/contract/event-store/sqlite-file.test.ts'],
  },
  {
    name: 'SQLite: the hash that an append expects is not compared',
    file: 'shared/event-store/sqlite/worker.ts',
    find: 'revision !== job.revision || (last?.hash ?? GENESIS_HASH) !== job.hash',
    put: 'revision !== job.revision',
    tests: ['test/contract/event-store.test.ts'],
  },
  {
    name: 'SQLite: the end of the hash chain is not verified at the start',
    file: 'shared/event-store/sqlite/worker.ts',
    find: '= verifyTail();',
    put: '= logEnd();',
    tests: ['test/contract/event-store/sqlite-file.test.ts'],
  },
  {
    name: 'SQLite: a failed commit counts as not stored',
    file: 'shared/event-store/sqlite/worker.ts',
    find: 'message, unknown: committing }',
    put: 'message, unknown: false }',
    tests: ['test/contract/event-store/sqlite-file.test.ts'],
  },
  {
    name: 'SQLite: writing goes on after a failed fsync',
    file: 'shared/event-store/sqlite/worker.ts',
    find: "    if (failure.kind === 'fatal') stopped = { ...failure, unknown: false };\n",
    put: '',
    tests: ['test/contract/event-store/sqlite-file.test.ts'],
  },
  {
    name: 'EventStoreDB: an append expects any revision',
    file: 'shared/event-store/eventstoredb/event-store.ts',
    find: 'after < 0 ? NO_STREAM : BigInt(after)',
    put: "after < 0 ? NO_STREAM : 'any'",
    tests: ['test/contract/event-store/eventstoredb-faults.test.ts'],
  },
  {
    name: 'EventStoreDB: a try after a conflict takes the newer revision',
    file: 'shared/event-store/eventstoredb/event-store.ts',
    find: "if (outcome === 'conflict') return { conflict: actualRevision(error) };",
    put: `if (outcome === 'conflict') {
          after = actualRevision(error);
          continue;
        }`,
    tests: ['test/contract/event-store/eventstoredb-faults.test.ts'],
  },
  {
    name: 'verifying does not link the log',
    file: 'shared/event-store/chain.ts',
    find: "  if (linkLog(before.logHash, row.hash) !== row.logHash) return 'it does not follow in the log';\n",
    put: '',
    tests: ['test/audit/tampering.test.ts'],
  },
  {
    name: "an export's last line is not compared with the head of its manifest",
    file: 'cli/verify-file.ts',
    find: ' ?? headReason(last, manifest)',
    put: '',
    tests: ['test/audit/tampering.test.ts'],
  },
  {
    name: "an export's chain is not compared with its manifest",
    file: 'cli/verify-file.ts',
    find: "  if (seen.chain !== manifest.chain) return 'the file does not end as the manifest says';\n",
    put: '',
    tests: ['test/audit/tampering.test.ts'],
  },
];

const READ_MODELS: SeededBug[] = [
  {
    name: 'the projector follows another log than the one its documents were made of',
    file: 'projector/lag.ts',
    find: '  if (hash === null || (await store.hashAt(checkpoint)) === hash) return undefined;\n',
    put: '  if (hash !== undefined) return undefined;\n',
    tests: ['test/projector/compose.test.ts'],
  },
  {
    name: 'the relay forgets which log it has sent',
    file: 'projector/relay/relay.ts',
    find: "  checkpoint.hash = 'hash' in event ? event.hash : null;\n",
    put: '',
    tests: ['test/projector/relay.test.ts'],
  },
  {
    name: 'an older read model is written over a newer one',
    file: 'shared/read-models/sqlite/read-models.ts',
    find: '\n     WHERE excluded.revision > payment.revision`',
    put: '`',
    tests: ['test/contract/read-models.test.ts'],
  },
  {
    name: 'the projection takes an event that its document has already',
    file: 'projector/projection.ts',
    find: '    if (isOld(read model, event)) return before;\n',
    put: '',
    tests: ['test/projector/projection.test.ts'],
  },
  {
    name: 'a gap in the events of a payment is not healed',
    file: 'projector/projection.ts',
    find: 'return isNext(read model, event) ? applyOne(read model, event) : heal(paymentId, event);',
    put: 'return applyOne(read model, event);',
    tests: ['test/projector/projection.test.ts'],
  },
  {
    name: 'the checkpoint is moved by whoever comes',
    file: 'shared/read-models/sqlite/read-models.ts',
    find: 'if (at.move.run(to, hash ?? null, from).changes !== 1)',
    put: 'if (at.move.run(to, hash ?? null, from).changes > 1)',
    tests: ['test/contract/read-models.test.ts'],
  },
  {
    name: 'one event that cannot be applied stops all',
    file: 'projector/projection.ts',
    find: '    return { read model, poison: { revision: event.revision, reason: reasonOf(error) } };',
    put: '    throw error;',
    tests: ['test/projector/projection.test.ts'],
  },
  {
    name: 'no payment is ever known to be behind',
    file: 'projector/freshness.ts',
    find: 'return entry !== undefined && entry.committed > entry.applied;',
    put: 'return false;',
    tests: ['test/memory/freshness.test.ts'],
  },
  {
    name: 'two projectors follow the log at once',
    file: 'projector/lease.ts',
    find: 'heldUntil = taken ? until : undefined;\n    return taken;',
    put: 'heldUntil = taken ? until : undefined;\n    return true;',
    tests: ['test/projector/lease.test.ts'],
  },
  {
    name: 'GET gives a document that is known to be behind',
    file: 'query-api/get-payment.ts',
    find: ' && !(await behind(document.revision))',
    put: '',
    tests: ['test/http/get-payment.test.ts'],
  },
  {
    name: 'GET gives the document of a parked payment',
    file: 'query-api/get-payment.ts',
    find: ' && !document.parked',
    put: '',
    tests: ['test/http/get-payment.test.ts'],
  },
];

const EVENT_FEED: SeededBug[] = [
  {
    name: 'the checkpoint of the relay is saved before the broker has the messages',
    file: 'projector/relay/relay.ts',
    find: '    sendingSinceMs = performance.now();\n',
    put: `    if (!(await place.save(next))) throw lostPlace();
    sendingSinceMs = performance.now();
`,
    tests: ['test/projector/relay.test.ts'],
  },
  {
    name: 'all partitions count together',
    file: 'projector/relay/batch.ts',
    find: '  counters[partition] = (counters[partition] ?? 0) + 1;',
    put: '  for (const at of counters.keys()) counters[at] = (counters[partition] ?? 0) + 1;',
    tests: ['test/projector/relay.test.ts'],
  },
  {
    name: 'a relay that was overtaken still moves the checkpoint',
    file: 'projector/relay/checkpoint/file.ts',
    find: '    if (version !== expectedVersion) return false;\n',
    put: '',
    tests: ['test/contract/key-document.test.ts'],
  },
];

const PROVIDER_AND_LIMITS: SeededBug[] = [
  {
    name: "the provider's answer for another amount is taken",
    file: 'command-api/provider/http/responses.ts',
    find: '    amount === question.amount &&\n',
    put: '',
    tests: ['test/contract/provider/http-faults.test.ts'],
  },
  {
    name: "the provider's answer about another operation is taken",
    file: 'command-api/provider/http/responses.ts',
    find: '    operationId === question.operationId &&\n',
    put: '',
    tests: ['test/contract/provider/http-faults.test.ts'],
  },
  {
    name: "the provider's redirects are followed",
    file: 'command-api/provider/http/provider.ts',
    find: '    const answer = await pool.request({ method,',
    put: `    const { interceptors } = await import('undici');
    const following = pool.compose(interceptors.redirect({ maxRedirections: 3 }));
    const answer = await following.request({ origin: base.origin, method,`,
    tests: ['test/contract/provider/http-faults.test.ts'],
  },
  {
    name: 'a time-out counts as never sent',
    file: 'command-api/provider/http/provider.ts',
    find: "if (aborted) return { sent: true, unknown: unknown('timeout') };",
    put: "if (aborted) return { sent: false, unknown: unknown('timeout') };",
    tests: ['test/contract/provider/http-faults.test.ts'],
  },
  {
    name: "a provider's answer may have any size",
    file: 'command-api/provider/http/provider.ts',
    find: '    if (bytes > BODY_BYTES_MAX) throw new TooLarge();\n',
    put: '',
    tests: ['test/contract/provider/http-faults.test.ts'],
  },
  {
    name: 'the breaker never opens',
    file: 'command-api/provider/resilience.ts',
    find: 'options.failuresToOpen ?? 5',
    put: 'Number.POSITIVE_INFINITY',
    tests: ['test/contract/provider/resilience.test.ts'],
  },
  {
    name: 'any number of calls is at the provider at once',
    file: 'command-api/provider/resilience.ts',
    find: 'bulkhead(callsMax, queueMax)',
    put: 'bulkhead(Number.MAX_SAFE_INTEGER, queueMax)',
    tests: ['test/contract/provider/resilience.test.ts'],
  },
  {
    name: 'a call that failed under way counts as never sent',
    file: 'command-api/provider/resilience.ts',
    find: "return sent ? { outcome: 'UNKNOWN', reason: 'failed' } : NOT_SENT;",
    put: 'return NOT_SENT;',
    tests: ['test/contract/provider/resilience.test.ts'],
  },
  {
    name: 'the cap on requests at once is ignored',
    file: 'shared/http/server/app.ts',
    find: ' > maxInFlight && !isHealth(request)',
    put: ' > maxInFlight && isHealth(request)',
    tests: ['test/http/framework-rejections.test.ts'],
  },
  {
    name: 'a body may have a megabyte',
    file: 'shared/http/server/app.ts',
    find: '    bodyLimit: BODY_BYTES_MAX,\n',
    put: '',
    tests: ['test/http/framework-rejections.test.ts'],
  },
  {
    name: 'the rate of a merchant is never drawn on',
    file: 'shared/http/auth/authorize.ts',
    find: 'const seconds = merchants.take(caller.merchantId, rateOf(caller.merchantId));',
    put: 'const seconds = undefined;',
    tests: ['test/http/tokens.test.ts'],
  },
];

export const SEEDED_BUGS: SeededBug[] = [
  ...INTENT_AND_PROVIDER,
  ...RECOVERY,
  ...RULES,
  ...IDEMPOTENCY,
  ...MERCHANTS_AND_TOKENS,
  ...CARDS_AND_LOGS,
  ...STORE,
  ...READ_MODELS,
  ...EVENT_FEED,
  ...PROVIDER_AND_LIMITS,
];

/** What no test notices, and why not. */
export const UNNOTICED: (Omit<SeededBug, 'tests'> & { reason: string })[] = [
  {
    name: 'the feed checkpoint is renamed before it is on the disk',
    file: 'projector/relay/checkpoint/file.ts',
    find: '    await handle.writeFile(content);\n    await handle.sync();\n',
    put: '    await handle.writeFile(content);\n',
    reason: 'only a power failure takes what the system still holds, and a killed process is none',
  },
  {
    name: 'EventStoreDB: a stream is read from any node of a cluster',
    file: 'shared/event-store/eventstoredb/event-store.ts',
    find: 'client.readStream(stream, { requiresLeader: true })',
    put: 'client.readStream(stream, {})',
    reason:
      'a node that lags behind its leader takes a cluster of three, and the tests have one node',
  },
  {
    name: 'the relay sends past an event that is held back',
    file: 'projector/relay/relay.ts',
    find: "    if (batch.next.held[paymentId] !== undefined) return 'an event before it is held back';\n",
    put: '',
    reason:
      'changes nothing: without the event that is held back those after it cannot be folded, and that holds them back as well',
  },
  {
    name: 'a token need not have an exp',
    file: 'shared/http/auth/authenticate.ts',
    find: "    requiredClaims: ['exp'],\n",
    put: '',
    reason: 'changes nothing: the line that refuses what is no finite number refuses this too',
  },
  {
    name: 'a secret verifies whatever algorithm the token names',
    file: 'shared/http/auth/authenticate.ts',
    find: "algorithms: ['HS256'], recheckMs",
    put: "algorithms: ['HS256', 'HS384', 'HS512'], recheckMs",
    reason:
      'changes nothing: the key is made for HS256 alone, and checking by another algorithm fails',
  },
];
