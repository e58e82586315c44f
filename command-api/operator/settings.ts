import { z } from 'zod';
import manifest from '../../package.json' with { type: 'json' };
import type { Config } from '../../shared/runtime/config.ts';
import { withoutSecrets } from '../../shared/runtime/settings/effective.ts';

export const ServiceSettings = z
  .object({
    version: z.string(),
    mode: z.enum(['embedded', 'command-api', 'query-api', 'projector', 'provider']),
    dataFolder: z.string().describe('Where an embedded service keeps its files.'),
    provider: z
      .object({ simulated: z.boolean(), address: z.string().nullable() })
      .describe('Simulated: it moves no money.'),
    warnings: z.array(z.string()),
    settings: z.array(
      z.object({
        name: z.string(),
        value: z.string().describe('In effect; a secret is hidden.'),
        origin: z.enum(['environment', 'file', 'default']),
      }),
    ),
  })
  .meta({ id: 'ServiceSettings' });
export type ServiceSettings = z.infer<typeof ServiceSettings>;

export const serviceSettings = (config: Config): ServiceSettings => {
  const { mode, dataDir, provider, stripe, warnings, effective } = config;
  const url = stripe?.url ?? provider.url;
  const address = url === undefined ? null : withoutSecrets(url);
  return {
    version: manifest.version,
    mode,
    dataFolder: dataDir,
    provider: { simulated: address === null, address },
    warnings: [...warnings],
    settings: [...effective],
  };
};
