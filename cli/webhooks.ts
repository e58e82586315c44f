/** `payments webhooks`: a merchant's endpoints, on the API. */
import { setTimeout as wait } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import type { Attempt } from '../webhooks/delivery/delivery-row.ts';
import type {
  WebhookEndpoint,
  WebhookEndpointList,
  WebhookEndpointWithSecret,
} from '../webhooks/endpoints/contract.ts';
import { type Client, jsonOf, openClient } from './client.ts';
import { formatted, type Given, timeValue, verb } from './options.ts';
import { CommandFailed, columns, note, print, printJson, printList, table } from './output.ts';

type Options = Given<'merchant'>;

const ENDPOINTS = '/api/v1/webhook-endpoints';
const pathOf = (endpointId: string, rest = ''): string =>
  `${ENDPOINTS}/${encodeURIComponent(endpointId)}${rest}`;

const send = async <T>(
  { merchant }: Options,
  method: Parameters<Client['send']>[0],
  path: string,
  body?: object,
): Promise<T> => {
  const client = await openClient({ scope: 'payments:read webhooks:write', merchant });
  return jsonOf<T>(client.send(method, path, body));
};

const endpointLines = (endpoints: readonly WebhookEndpoint[]): string[] => {
  const rows = endpoints.map((one) => [one.id, one.status, one.oldestWaiting ?? '-', one.url]);
  return columns([['ENDPOINT', 'STATUS', 'OLDEST WAITING', 'URL'], ...rows]);
};

const NO_ENDPOINT = 'No endpoint; register one: payments webhooks create <url>';
const showEndpoints = (endpoints: WebhookEndpoint[], { format }: Options): void =>
  printList(format, endpoints, endpointLines, NO_ENDPOINT);

const showSecret = (endpoint: WebhookEndpointWithSecret, { format }: Options): void => {
  if (format === 'json') printJson(endpoint);
  else {
    print(`${endpoint.id}  ${endpoint.url}`, `secret  ${endpoint.secret}`);
    note(
      'The secret is shown this once. Lost, it is rotated: payments webhooks rotate <endpointId>',
    );
  }
};

const attemptsTable = table<Attempt>({
  AT: ({ at }) => at,
  TYPE: ({ type }) => type,
  PAYMENT: ({ paymentId, revision }) => (paymentId === null ? '-' : `${paymentId} r${revision}`),
  ATTEMPT: ({ attempt }) => String(attempt),
  STATUS: ({ error, status }) => error ?? String(status),
  TIME: ({ latencyMs }) => `${latencyMs} ms`,
  OUTCOME: ({ outcome }) => outcome,
  NEXT: ({ nextAt }) => nextAt ?? '-',
});

const showAttempts = (attempts: Attempt[], { format }: Options): void =>
  printList(format, attempts, attemptsTable, 'No attempt yet.');

const listAttempts = async (endpointId: string, query: string, options: Options) => {
  const path = pathOf(endpointId, `/attempts${query}`);
  return (await send<{ attempts: Attempt[] }>(options, 'GET', path)).attempts;
};

/** 40 s: a test may wait for another request of 15 s, and take as long itself. */
const POLL_MS = 200;
const POLLS_MAX = 200;

const test = async (endpointId: string, options: Options): Promise<void> => {
  const { eventId } = await send<{ eventId: string }>(options, 'POST', pathOf(endpointId, '/test'));
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    const attempts = await listAttempts(endpointId, `?eventId=${eventId}`, options);
    const [attempt] = attempts;
    if (attempt !== undefined) {
      showAttempts(attempts, options);
      if (attempt.outcome === 'ACCEPTED') return;
      throw new CommandFailed('the endpoint did not accept the test message');
    }
    await wait(POLL_MS);
  }
  throw new CommandFailed('no attempt at the test message within 40 s; is the projector running?');
};

const create = async (url: string, options: Given<'merchant' | 'types' | 'description'>) => {
  const { types, description } = options;
  const eventTypes = types?.split(',').map((one) => one.trim());
  showSecret(await send(options, 'POST', ENDPOINTS, { url, eventTypes, description }), options);
};

const list = async (options: Options): Promise<void> => {
  const { endpoints } = await send<WebhookEndpointList>(options, 'GET', ENDPOINTS);
  showEndpoints(endpoints, options);
};

const attempts = async (endpointId: string, options: Options): Promise<void> =>
  showAttempts(await listAttempts(endpointId, '?limit=1000', options), options);

const rotate = async (endpointId: string, options: Options & { oldExpires: number }) => {
  const body = { oldExpiresInHours: options.oldExpires };
  showSecret(await send(options, 'POST', pathOf(endpointId, '/rotate-secret'), body), options);
};

const change = async (endpointId: string, body: object, options: Options): Promise<void> =>
  showEndpoints([await send(options, 'PATCH', pathOf(endpointId), body)], options);

const enable = (endpointId: string, options: Options & { fromNow?: true }): Promise<void> => {
  const resumeFrom = options.fromNow ? 'now' : 'checkpoint';
  return change(endpointId, { status: 'ENABLED', resumeFrom }, options);
};

const disable = (endpointId: string, options: Options): Promise<void> =>
  change(endpointId, { status: 'DISABLED' }, options);

const remove = async (endpointId: string, options: Options): Promise<void> => {
  await send(options, 'DELETE', pathOf(endpointId));
  note(`deleted: ${endpointId}; what it has not accepted is not sent any more`);
};

const resend = async (endpointId: string, options: Given<'merchant' | 'since' | 'event'>) => {
  const body = { since: options.since, eventId: options.event };
  await send(options, 'POST', pathOf(endpointId, '/resend'), body);
  note(`sent again: payments webhooks attempts ${endpointId}`);
};

const part = (name: string, description: string, example: string): Command =>
  formatted(name, `payments webhooks ${name}${example}`)
    .description(description)
    .option('--merchant <id>', 'whose endpoints; m_demo where left out');

const ofOne = (name: string, description: string, options = ''): Command =>
  part(name, description, ` we_01J…${options}`).argument(
    '<endpointId>',
    'the endpoint, see payments webhooks list',
  );

/** Rejects an empty text: as a 0 it would end the old secret at once. */
const hours = (text: string): number => {
  if (/^[0-9]{1,3}$/.test(text) && Number(text) <= 168) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of hours from 0 to 168.');
};

const EXAMPLE = ' https://shop.example/webhooks --types payment.captured';

export const webhooksCommand = (): Command =>
  verb('webhooks', `payments webhooks create${EXAMPLE}`)
    .description('Registers and manages webhook endpoints.')
    .addCommand(
      part('create', 'Registers an address and prints its secret, this once.', EXAMPLE)
        .argument('<url>', 'https, on a public address')
        .option('--types <types>', 'comma list; all but payment.created where left out')
        .option('--description <text>', 'what the endpoint is for')
        .action(create),
    )
    .addCommand(
      part('list', 'Lists the endpoints with their state.', ' --merchant m_1').action(list),
    )
    .addCommand(ofOne('attempts', 'Lists the last 1,000 requests to an endpoint.').action(attempts))
    .addCommand(ofOne('test', 'Sends a test message and waits for the response.').action(test))
    .addCommand(
      ofOne('rotate', 'Makes a new secret and prints it, this once.')
        .option('--old-expires <hours>', 'how long the old one signs too: 0 to 168', hours, 24)
        .action(rotate),
    )
    .addCommand(
      ofOne('enable', 'Goes on with an endpoint that was disabled.')
        .option('--from-now', 'without what happened until now')
        .action(enable),
    )
    .addCommand(ofOne('disable', 'Stops the messages until it is enabled.').action(disable))
    .addCommand(ofOne('delete', 'Deletes an endpoint.').action(remove))
    .addCommand(
      ofOne(
        'resend',
        'Sends events again, each under the id that it had.',
        ' --since 2026-11-22T12:00:00Z',
      )
        .option('--since <time>', 'all since then, as 2026-11-22T12:00:00Z', timeValue)
        .option('--event <eventId>', 'this one')
        .action(resend),
    );
