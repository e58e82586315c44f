/** The three engines as docker-compose.yml describes them, for tests that start them without Compose. */
import { parse } from 'yaml';
import { z } from 'zod';

const durationMs = z
  .string()
  .regex(/^\d+s$/, { error: ({ input }) => `${input} is no duration in seconds` })
  .transform((text) => Number.parseInt(text, 10) * 1_000);

const healthcheck = z
  .object({
    test: z.union([
      z.tuple([z.literal('CMD-SHELL'), z.string()]),
      z.tuple([z.literal('CMD')], z.string()),
    ]),
    interval: durationMs,
    timeout: durationMs,
    retries: z.number(),
    start_period: durationMs,
  })
  .transform(({ start_period: startPeriod, ...rest }) => ({ ...rest, startPeriod }));

const engine = z.object({
  image: z.string(),
  platform: z.string().optional(),
  user: z.string().optional(),
  environment: z.record(z.string(), z.string()).default({}),
  command: z.array(z.string()).optional(),
  healthcheck,
});

const services = z.object({ eventstoredb: engine, mongodb: engine, kafka: engine });

/** Every required secret of the containers of a test, which only this machine reaches. */
export const TRIAL_SECRET = 'a0'.repeat(32);

export type EngineService = z.infer<typeof engine>;

/** Replaces Compose's variables that have a default or are required, and its `$$`. */
const interpolated = (text: string, values: Readonly<Record<string, string>>): string =>
  text
    .replaceAll(/\$\{([A-Z_]+):-([^}]*)\}/g, (_, name, byDefault) => values[name] ?? byDefault)
    .replaceAll(/\$\{([A-Z_]+):\?[^}]*\}/g, (_, name) => values[name] ?? TRIAL_SECRET)
    .replaceAll('$$', '$');

/** From the text of docker-compose.yml, times in milliseconds. `values` replace defaults. Throws when a service has another form. */
export const engineServices = (compose: string, values: Readonly<Record<string, string>> = {}) =>
  services.parse(parse(interpolated(compose, values), { merge: true }).services);
