/** `payments trigger`: a scenario as curl, responses, events; `payments cards`: test numbers (gaps §13). */
import { setTimeout } from 'node:timers/promises';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import type { AuditEvent } from '../../audit/contract.ts';
import { PaymentRequest } from '../../command-api/request/schemas.ts';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { orElse } from '../../shared/runtime/error-text.ts';
import { amountIn, auditClient, paymentPath } from '../audit.ts';
import { type Client, openClient, rejectionLine } from '../client.ts';
import { type Format, formatted } from '../options.ts';
import { CommandFailed, note, print, printJson, quoted, styled, table } from '../output.ts';
import { SCENARIO_NAMES, SCENARIOS, type ScenarioName, type Step } from './scenarios.ts';

const cardsTable = table<(typeof TEST_CARDS)[number]>({
  NUMBER: ({ number }) => number,
  TOKEN: ({ token = '' }) => token,
  OUTCOME: ({ outcome }) => outcome,
  'FAILURE CODE': ({ failureCode = '' }) => failureCode,
});

const printCards = ({ format }: { format: Format }): void => {
  if (format === 'json') printJson(TEST_CARDS.map(({ behaviour: _, ...shown }) => shown));
  else print(...cardsTable(TEST_CARDS));
};

export const cardsCommand = (): Command =>
  formatted('cards', 'payments cards --format json')
    .description('Lists the test cards of the simulated provider and what each of them does.')
    .action(printCards);

type Json = Record<string, unknown>;

const wrong = (message: string): CommandFailed => new CommandFailed(message, 2);

const withoutOptional = (schema: z.core.$ZodType): z.core.$ZodType =>
  schema instanceof z.ZodOptional ? withoutOptional(schema.unwrap()) : schema;

const namesIn = (path: string): string[] => path.replace(/\[(\d+)\]/g, '.$1').split('.');

/** A union has the fields of all its forms. */
const fieldOf = (schema: z.core.$ZodType, name: string): z.core.$ZodType | undefined => {
  if (schema instanceof z.ZodUnion)
    return schema.options.map((form) => fieldOf(form, name)).find((field) => field !== undefined);
  if (schema instanceof z.ZodObject && Object.hasOwn(schema.shape, name)) return schema.shape[name];
  return schema instanceof z.ZodArray && /^\d{1,3}$/.test(name) ? schema.element : undefined;
};

const schemaAt = (path: string): z.core.$ZodType | undefined => {
  let schema: z.core.$ZodType | undefined = PaymentRequest;
  for (const step of namesIn(path)) schema = schema && fieldOf(withoutOptional(schema), step);
  return schema && withoutOptional(schema);
};

const put = (target: Json, [step = '', ...rest]: string[], value: unknown): void => {
  if (rest.length === 0) target[step] = value;
  else {
    const inner = target[step] ?? (/^\d+$/.test(rest[0] ?? '') ? [] : {});
    if (typeof inner !== 'object')
      throw wrong(`--set: ${step} already has a value, so it cannot hold fields`);
    target[step] = inner;
    put(inner as Json, rest, value);
  }
};

const KNOWN_CARDS: ReadonlySet<unknown> = new Set(TEST_CARDS.map(({ number }) => number));

const checkCard = (body: Json): void => {
  const number: unknown = Object(Object(body.paymentMethod).card).number;
  if (number === undefined || KNOWN_CARDS.has(number)) return;
  throw wrong('--set: only test cards are allowed here; list them with: payments cards');
};

/** A copy of a create request with the overrides in it. Throws CommandFailed with exit code 2. */
export const withOverrides = (body: Json, overrides: readonly string[]): Json => {
  const changed = structuredClone(body);
  for (const override of overrides) {
    const [, path = '', text = ''] = /^([^=]+)=(.*)$/s.exec(override) ?? [];
    if (path === '')
      throw wrong('--set: the override must be path=value, such as consumer.email=a@b.example');
    const schema = schemaAt(path);
    if (schema === undefined)
      throw wrong(`--set: a payment request has no field ${path}; see docs/interface.md`);
    // A text field takes the text; any other field takes JSON, so that 5 is a number.
    const isText = schema instanceof z.ZodString || schema instanceof z.ZodEnum;
    put(changed, namesIn(path), isText ? text : orElse(text, () => JSON.parse(text)));
  }
  checkCard(changed);
  return changed;
};

type TriggerOptions = { amount: number; set: string[]; format: Format };

type PlayedStep = {
  name: string;
  request: { method: string; path: string; body?: unknown };
  status: number;
  response: unknown;
  events: AuditEvent[];
};

const PAYMENTS = '/api/v1/payments';
const UNTIL_WAIT_MS = 250;
const UNTIL_ATTEMPTS_MAX = 120;

const minorUnits = (text: string): number => {
  if (/^[1-9][0-9]{0,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be an integer of minor units, such as 2500.');
};

/** The token stays a variable of the shell. */
const curlOf = (url: string, { method, path, body }: PlayedStep['request']): string => {
  if (!path.startsWith('/')) return `curl -sS -X POST ${quoted(path)}`;
  return [
    `curl -sS ${method === 'POST' ? '-X POST ' : ''}${quoted(url + path)}`,
    `-H "authorization: Bearer $TOKEN"`,
    ...(body === undefined
      ? []
      : [`-H 'content-type: application/json'`, `-d ${quoted(JSON.stringify(body))}`]),
  ].join(' \\\n  ');
};

const eventLine = (event: AuditEvent): string =>
  `  r${event.revision}  ${event.type}  ${amountIn(event)}`.trimEnd();

const printStep = (url: string, { name, request, status, response, events }: PlayedStep): void => {
  print(styled('bold', `# ${name}`), curlOf(url, request));
  const lines = JSON.stringify(response, null, 2).split('\n');
  print(styled(status < 400 ? 'green' : 'yellow', String(status)), ...lines);
  if (events.length > 0) print('events', ...events.map(eventLine));
  print('');
};

/** A 503 names the payment in its details. */
const paymentOf = (response: unknown): string | undefined => {
  const { paymentId, details } = Object(response);
  if (typeof paymentId === 'string') return paymentId;
  const named = Array.isArray(details) ? details.map(String) : [];
  return /^paymentId (\S+)$/m.exec(named.join('\n'))?.[1];
};

const eventReader = async (): Promise<(id: string | undefined) => Promise<AuditEvent[]>> => {
  const audit = await auditClient();
  let seen = -1;
  let rejected = false;
  return async (id) => {
    if (id === undefined || rejected) return [];
    const response = await audit.get(paymentPath(id, 'events'));
    if (!response.ok) {
      rejected = true;
      note(`payments: no events shown: ${rejectionLine(response.status, await response.text())}`);
      return [];
    }
    const { events } = (await response.json()) as { events: AuditEvent[] };
    const fresh = events.filter(({ revision }) => revision > seen);
    seen = fresh.at(-1)?.revision ?? seen;
    return fresh;
  };
};

/** Sends what the shopper's browser sends, so without a token. */
const press = async (button: string) => {
  const { status } = await fetch(button, { method: 'POST', redirect: 'manual' });
  return { status, response: {} as unknown };
};

const sendUntil = async (
  client: Client,
  { method, path, body }: PlayedStep['request'],
  until: Step['until'] = () => true,
) => {
  for (let attempts = 1; ; attempts += 1) {
    const sent = await (method === 'POST' ? client.post(path, body) : client.get(path));
    const [status, text] = [sent.status, await sent.text()];
    const response: unknown = orElse(undefined, () => JSON.parse(text));
    if (response === undefined) throw new CommandFailed(rejectionLine(status, text));
    if (status !== 200 || until(Object(response))) return { status, response };
    if (attempts === UNTIL_ATTEMPTS_MAX)
      throw new CommandFailed(`the payment is still not so: ${text}`);
    await setTimeout(UNTIL_WAIT_MS);
  }
};

/** Throws where the service has another provider, with which the scenario would have no effect. */
const checkSimulated = async ({ get, url }: Client, name: ScenarioName): Promise<void> => {
  const ready: unknown = await (await get('/health/ready')).json().catch(() => undefined);
  const { simulated } = Object(Object(Object(ready).engines).provider);
  if (simulated === true) return;
  throw new CommandFailed(
    `${name} needs the simulated provider in the service's own process, and ${url} has another one`,
  );
};

const play = async (name: ScenarioName, options: TriggerOptions): Promise<void> => {
  const { format } = options;
  const steps = stepsOf(name, options);
  const client = await openClient();
  if (SCENARIOS[name].simulated) await checkSimulated(client, name);
  const eventsOf = await eventReader();
  const all: PlayedStep[] = [];
  let id: string | undefined;
  let page: string | undefined;
  let mismatch: string | undefined;
  for (const { name: step, method, path, body, expected, until } of steps) {
    const isButton = path.startsWith('{page}');
    const at = path.replace('{page}', page ?? '').replace('{id}', id ?? '');
    const own = body !== undefined && { body };
    const request = { method, path: isButton ? at : PAYMENTS + at, ...own };
    const { status, response } = isButton
      ? await press(request.path)
      : await sendUntil(client, request, until);
    id ??= paymentOf(response);
    page ??= Object(Object(response).nextAction).url;
    const played = { name: step, request, status, response, events: await eventsOf(id) };
    all.push(played);
    if (format === 'pretty') printStep(client.url, played);
    if (status !== expected) {
      mismatch = `${step} got the response ${status}, and the scenario expects ${expected}`;
      break;
    }
  }
  if (format === 'json') printJson(all);
  if (mismatch !== undefined) throw new CommandFailed(mismatch);
  if (format === 'pretty' && id !== undefined) note(`Next:  payments events ${id}`);
};

const stepsOf = (name: ScenarioName, { amount, set }: TriggerOptions): Step[] => {
  const { amountMin, steps } = SCENARIOS[name];
  if (amount < amountMin)
    throw new CommandFailed(`--amount: ${name} needs at least ${amountMin}`, 2);
  return steps(amount).map((step) =>
    step.path === '' ? { ...step, body: withOverrides(step.body ?? {}, set) } : step,
  );
};

const SUMMARIES = SCENARIO_NAMES.map((name) => `  ${name.padEnd(22)} ${SCENARIOS[name].summary}`);

export const triggerCommand = (): Command =>
  formatted(
    'trigger',
    'payments trigger full-story --amount 2500 --set merchantReference=order-7',
    'payments trigger dispute',
  )
    .description(
      'Runs a scenario against the service: each request as curl, its response, its events.',
    )
    .addArgument(new Argument('<scenario>', 'which scenario').choices(SCENARIO_NAMES))
    .option('--amount <minor>', 'the amount of the payment in minor units', minorUnits, 2500)
    .option(
      '--set <path=value>',
      'a field of the create request; may be given again',
      (one: string, before: string[]) => [...before, one],
      [] as string[],
    )
    .addHelpText('after', `\nScenarios:\n${SUMMARIES.join('\n')}`)
    .action(play);
