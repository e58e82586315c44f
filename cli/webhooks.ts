/** `payments webhooks`: a merchant's endpoints, on the API. */
import { setTimeout as wait } from 'node:timers/promises';
import { Command, InvalidArgumentError } from 'commander';
import type {
  WebhookEndpoint,
  WebhookEndpointList,
  WebhookEndpointWithSecret,
} from '../command-api/webhooks/contract.ts';
import type { Attempt } from '../shared/webhooks/delivery-row.ts';
import { type Client, jsonOf, openClient, orFail } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { columns, type Format, formatOption, note, print, printJson } from './output.ts';
import { timeValue } from './time-option.ts';

type Options = { merchant?: string; format: Format };

const ENDPOINTS = '/api/v1/webhook-endpoints';
const pathOf = (endpointId: string, rest = ''): string =>
  `${ENDPOINTS}/${encodeURIComponent(endpointId)}${rest}`;

const clientFor = ({ merchant }: Options): Promise<Client> =>
  openClient({ scope: 'payments:read webhooks:write', merchant });

const rowOf = ({ id, url, status, oldestWaiting }: WebhookEndpoint): string[] => [
  id,
  status,
  oldestWaiting ?? '-',
  url,
];

const showEndpoints = (endpoints: WebhookEndpoint[], { format }: Options): void => {
  if (format === 'json') printJson(endpoints);
  else if (endpoints.length === 0)
    note('No endpoint; register one: payments webhooks create <url>');
  else
    print(...columns([['ENDPOINT', 'STATUS', 'OLDEST WAITING', 'URL'], ...endpoints.map(rowOf)]));
};

const showSecret = (endpoint: WebhookEndpointWithSecret, { format }: Options): void => {
  if (format === 'json') {
    printJson(endpoint);
    return;
  }
  print(`${endpoint.id}  ${endpoint.url}`, `secret  ${endpoint.secret}`);
  note('The secret is shown this once. Lost, it is rotated: payments webhooks rotate <endpointId>');
};

const attemptRow = (one: Attempt): string[] => [
  one.at,
  one.type,
  one.paymentId === null ? '-' : `${one.paymentId} r${one.revision}`,
  String(one.attempt),
  one.error ?? String(one.status),
  `${one.latencyMs} ms`,
  one.outcome,
  one.nextAt ?? '-',
];
const ATTEMPT_HEAD = ['AT', 'TYPE', 'PAYMENT', 'ATTEMPT', 'STATUS', 'TIME', 'OUTCOME', 'NEXT'];

const showAttempts = (attempts: Attempt[], { format }: Options): void => {
  if (format === 'json') printJson(attempts);
  else if (attempts.length === 0) note('No attempt yet.');
  else print(...columns([ATTEMPT_HEAD, ...attempts.map(attemptRow)]));
};

const listAttempts = async (
  client: Client,
  endpointId: string,
  query: string,
): Promise<Attempt[]> =>
  (await jsonOf<{ attempts: Attempt[] }>(client.get(pathOf(endpointId, `/attempts${query}`))))
    .attempts;

/** A test may wait for a request of 15 s, and take as long. */
const POLL_MS = 200;
const POLLS_MAX = 200;

/** Sends a test and waits for what came of it. Exit code 1 where it was not accepted. */
const test = async (endpointId: string, options: Options): Promise<void> => {
  const client = await clientFor(options);
  const { eventId } = await jsonOf<{ eventId: string }>(client.post(pathOf(endpointId, '/test')));
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    const attempts = await listAttempts(client, endpointId, `?eventId=${eventId}`);
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

const verb = (name: string, description: string, example: string): Command =>
  new Command(name)
    .description(description)
    .option('--merchant <id>', 'whose endpoints; m_demo where left out')
    .addOption(formatOption())
    .addHelpText('after', `\nExample:\n  payments webhooks ${name}${example}`);

const listOf = (text: string): string[] => text.split(',').map((one) => one.trim());

/** An empty text is no 0, with which the old secret would sign nothing more. */
const hours = (text: string): number => {
  if (/^[0-9]{1,3}$/.test(text) && Number(text) <= 168) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of hours from 0 to 168.');
};

const ofOne = (name: string, description: string, options = ''): Command =>
  verb(name, description, ` we_01J…${options}`).argument(
    '<endpointId>',
    'the endpoint, see payments webhooks list',
  );

/** The verb `webhooks`. */
export const webhooksCommand = (): Command =>
  new Command('webhooks')
    .description(
      'Registers addresses that are sent what happens to payments, and looks after them.',
    )
    .addCommand(
      verb(
        'create',
        'Registers an address and prints its secret, this once.',
        ' https://shop.example/webhooks --types payment.captured',
      )
        .argument('<url>', 'https, on a public address')
        .option('--types <types>', 'comma list; all but payment.created where left out', listOf)
        .option('--description <text>', 'what the endpoint is for')
        .action(
          async (url: string, options: Options & { types?: string[]; description?: string }) => {
            const client = await clientFor(options);
            const { types: eventTypes, description } = options;
            const body = { url, eventTypes, description };
            showSecret(
              await jsonOf<WebhookEndpointWithSecret>(client.post(ENDPOINTS, body)),
              options,
            );
          },
        ),
    )
    .addCommand(
      verb('list', 'Lists the endpoints with their state.', ' --merchant m_1').action(
        async (options: Options) => {
          const client = await clientFor(options);
          const { endpoints } = await jsonOf<WebhookEndpointList>(client.get(ENDPOINTS));
          showEndpoints(endpoints, options);
        },
      ),
    )
    .addCommand(
      ofOne('attempts', 'Lists the last 1,000 requests to an endpoint.').action(
        async (endpointId: string, options: Options) =>
          showAttempts(
            await listAttempts(await clientFor(options), endpointId, '?limit=1000'),
            options,
          ),
      ),
    )
    .addCommand(ofOne('test', 'Sends a test message and waits for the response.').action(test))
    .addCommand(
      ofOne('rotate', 'Makes a new secret and prints it, this once.')
        .option('--old-expires <hours>', 'how long the old one signs too: 0 to 168', hours, 24)
        .action(async (endpointId: string, options: Options & { oldExpires: number }) => {
          const client = await clientFor(options);
          const body = { oldExpiresInHours: options.oldExpires };
          const rotated = client.post(pathOf(endpointId, '/rotate-secret'), body);
          showSecret(await jsonOf<WebhookEndpointWithSecret>(rotated), options);
        }),
    )
    .addCommand(
      ofOne('enable', 'Goes on with an endpoint that was disabled.')
        .option('--from-now', 'without what happened until now')
        .action(async (endpointId: string, options: Options & { fromNow?: true }) => {
          const client = await clientFor(options);
          const resumeFrom = options.fromNow ? 'now' : 'checkpoint';
          const body = { status: 'ENABLED', resumeFrom };
          showEndpoints(
            [await jsonOf<WebhookEndpoint>(client.patch(pathOf(endpointId), body))],
            options,
          );
        }),
    )
    .addCommand(
      ofOne(
        'resend',
        'Sends events again, each under the id that it had.',
        ' --since 2026-11-22T12:00:00Z',
      )
        .option('--since <time>', 'all since then, as 2026-11-22T12:00:00Z', timeValue)
        .option('--event <eventId>', 'this one')
        .action(
          async (endpointId: string, options: Options & { since?: string; event?: string }) => {
            const client = await clientFor(options);
            const body = { since: options.since, eventId: options.event };
            await orFail(await client.post(pathOf(endpointId, '/resend'), body));
            note(`sent again: payments webhooks attempts ${endpointId}`);
          },
        ),
    )
    .addHelpText(
      'after',
      '\nExample:\n  payments webhooks create https://shop.example/webhooks --types payment.captured',
    );
