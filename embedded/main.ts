/** `npm start`: the whole service in one process (docs/settings.md, "Commands"). */
import { SecretRefused } from '../command-api/idempotency-secret.ts';
import { PersonalDataRefused } from '../personal-data/open.ts';
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import { CONSOLE_PATH } from '../shared/http/pages.ts';
import type { Config } from '../shared/runtime/config.ts';
import { DataFolderRefused } from '../shared/runtime/private-files.ts';
import { runProcess } from '../shared/runtime/process-life.ts';
import { LogMisfit } from '../shared/subscription/errors.ts';
import { WebhookSecretRefused } from '../webhooks/signer.ts';
import { openService } from './compose.ts';
import { asDataFolderRefused, openDataFolder } from './data-folder.ts';

const modeAndData = ({ dataDir, eventStoreDbUrl }: Config, events: number): string => {
  if (eventStoreDbUrl !== undefined) return `mode embedded (${dataDir}, events in EventStoreDB)`;
  return `mode embedded (${dataDir}, ${events.toLocaleString('en-US')} ${events === 1 ? 'event' : 'events'})`;
};

const notForProduction = ({ provider, stripe, tokens, seals, eventStoreDbUrl }: Config) => [
  ...(provider.kind === 'simulator' ? ['simulated card provider'] : []),
  ...(stripe?.live === false ? ['Stripe in test mode'] : []),
  ...(tokens.keys.kind === 'local' ? ['local signing key'] : []),
  // A copy of the folder is enough to forge the seals.
  ...(seals.keyFile === undefined && eventStoreDbUrl === undefined
    ? ['sealing key beside the log']
    : []),
];

/** Where an issuer signs, `payments token` cannot. */
const nextStep = ({ tokens }: Config): string =>
  tokens.keys.kind.startsWith('jwks')
    ? 'npx payments doctor --production      walks docs/production.md'
    : 'export TOKEN=$(npx payments token)      then README, "Make a payment"';

const FATAL = [DataFolderRefused, StoreUnavailable, SecretRefused, WebhookSecretRefused, LogMisfit];

await runProcess({
  mode: 'embedded',
  operatorErrors: [...FATAL, PersonalDataRefused],
  prepare: ({ dataDir }) => openDataFolder(dataDir),
  open: ({ config, log, prepared, onFatal }) => {
    for (const line of prepared.waysBackLost) log.warn(line);
    return openService(config, prepared, log, (error) =>
      onFatal(asDataFolderRefused(error, config.dataDir)),
    ).catch((error: unknown) => {
      throw asDataFolderRefused(error, config.dataDir);
    });
  },
  banner: ({ eventsAtStart }, baseUrl, config) => ({
    what: modeAndData(config, eventsAtStart),
    addresses: [
      ['API', `${baseUrl}/api/v1/payments`],
      ['Docs', `${baseUrl}/docs`],
      ['Console', `${baseUrl}${CONSOLE_PATH}`],
      ['Metrics', `${baseUrl}/metrics`],
    ],
    notForProduction: notForProduction(config),
    next: nextStep(config),
  }),
  farewell: 'all events are on disk',
});
