/** `payments doctor --production`: walks docs/production.md against the settings in effect, section by section. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import type { EffectiveSetting } from '../shared/runtime/config.ts';
import { STRIPE_API_URL_DEFAULT } from '../shared/runtime/settings/table.ts';
import { columns, print, styled } from './output.ts';

/** One section of docs/production.md; `byHand` lists what no program can check. */
type ProductionFinding = { section: string; missing: string[]; byHand?: string };

/** The facts that the sections judge; `isOn` is false for a setting that is 0, false or not set. */
type Installation = {
  url: URL;
  inEffect(name: string): string;
  isGiven(name: string): boolean;
  isOn(name: string): boolean;
  /** Whether any client of that address can read /metrics. */
  showsMetrics: boolean;
};

type Section = {
  section: string;
  /** A line that is missing, and whether it is. */
  lines: (at: Installation) => Readonly<Record<string, boolean>>;
  byHand?: string;
};

const LOOPBACK = /^(localhost|127\.[0-9.]+|\[?::1\]?)$/;
const isLocal = ({ url }: Installation): boolean => LOOPBACK.test(url.hostname);

const isEmbedded = ({ inEffect }: Installation): boolean =>
  inEffect('EVENTSTOREDB_URL') === 'not set';

/** By real paths and devices. `file` may not be there yet. */
const liesWith = (file: string, folder: string): boolean => {
  const real = (path: string) => (existsSync(path) ? realpathSync(path) : resolve(path));
  if (!relative(real(folder), real(file)).startsWith('..')) return true;
  const deviceOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.dev;
  return existsSync(folder) && deviceOf(dirname(file)) === deviceOf(folder);
};

/** In a list: this machine, what a cloud tells it (link-local), a network shorter than /8 or /32. */
const TOO_WIDE =
  /(^|, *)((0|127|169\.254)\.|::|fe[89ab])|(\.[^,]*\/[0-7]|:[^,]*\/([12]?\d|3[01]))(,|$)/i;

const SECTIONS: readonly Section[] = [
  {
    section: '1 shape',
    lines: (at) => ({
      'DATA_DIR is not set, so the data lies in the folder of the code':
        !at.isGiven('DATA_DIR') && isEmbedded(at),
    }),
    byHand: 'an encrypted disk for a year of payments, clocks by NTP',
  },
  {
    section: '2 secrets',
    lines: (at) => {
      const { isGiven, inEffect } = at;
      const isWithin = (name: string) =>
        isGiven(name) && liesWith(inEffect(name), inEffect('DATA_DIR'));
      return {
        'IDEMPOTENCY_SECRET_FILE is not set, so each copy of the log has the secret':
          !isGiven('IDEMPOTENCY_SECRET'),
        'WEBHOOK_SECRET_FILE is not set, so each copy of the log has the secret':
          !isGiven('WEBHOOK_SECRET'),
        'SEALING_KEY_FILE is not set, so a thief of the data folder can forge the seals':
          isEmbedded(at) && !isGiven('SEALING_KEY_FILE'),
        'SEALING_KEY_FILE is on the volume of DATA_DIR, and belongs on another':
          isWithin('SEALING_KEY_FILE'),
        'SEALED_HEAD_FILE is on the volume of DATA_DIR, and belongs on another':
          isWithin('SEALED_HEAD_FILE'),
      };
    },
    byHand: 'a copy of each secret and of the sealing key in a vault',
  },
  {
    section: '3 tokens',
    lines: ({ isGiven, isOn }) => ({
      'JWT_JWKS_URL is not set: tokens are to come from an issuer':
        !isOn('JWT_JWKS_URL') && !isOn('JWT_JWKS_FILE'),
      'JWT_ISSUER is not set': !isGiven('JWT_ISSUER'),
      'JWT_AUDIENCE is not set': !isGiven('JWT_AUDIENCE'),
      'JWT_MERCHANT_CLAIM is not set, so the merchant is guessed': !isGiven('JWT_MERCHANT_CLAIM'),
    }),
  },
  {
    section: '4 provider',
    lines: ({ inEffect, isOn }) => {
      const isStripe = inEffect('PROVIDER') === 'stripe';
      return {
        'PROVIDER is the simulator, which moves no money': inEffect('PROVIDER') === 'simulator',
        'STRIPE_LIVE is not true, so no money moves': isStripe && !isOn('STRIPE_LIVE'),
        'STRIPE_API_URL is not that of Stripe, so a rehearsal takes the payments':
          isStripe && inEffect('STRIPE_API_URL') !== STRIPE_API_URL_DEFAULT,
        "STRIPE_WEBHOOK_SECRET_FILE is not set, so Stripe's webhooks are rejected":
          isStripe && !isOn('STRIPE_WEBHOOK_SECRET'),
        'RECONCILE_INTERVAL_MS is 0, so log and ledger are never compared':
          !isOn('RECONCILE_INTERVAL_MS'),
      };
    },
    byHand: 'the road of the card number, as your acquirer has accepted it',
  },
  {
    section: '5 settings',
    lines: ({ inEffect, isOn }) => ({
      'RATE_LIMIT_PER_SECOND is 0': !isOn('RATE_LIMIT_PER_SECOND'),
      'RATE_LIMIT_PER_SECOND is above 10000, which bounds no merchant':
        Number(inEffect('RATE_LIMIT_PER_SECOND')) > 10_000,
      'SEAL_INTERVAL_MS is above a day: until then a cut log is not found':
        Number(inEffect('SEAL_INTERVAL_MS')) > 86_400_000,
      'WEBHOOK_ALLOWED_NETWORKS lets merchants reach this machine or its network': TOO_WIDE.test(
        inEffect('WEBHOOK_ALLOWED_NETWORKS'),
      ),
      'RATE_LIMIT_UNAUTHENTICATED_PER_SECOND is 0': !isOn('RATE_LIMIT_UNAUTHENTICATED_PER_SECOND'),
      'VERIFY_INTERVAL_MS is 0, so the log is never verified': !isOn('VERIFY_INTERVAL_MS'),
      'LOG_LEVEL is to be info or warn': !['info', 'warn'].includes(inEffect('LOG_LEVEL')),
    }),
  },
  {
    section: '7 TLS',
    lines: (at) => ({
      'the service was reached without TLS from another machine':
        at.url.protocol !== 'https:' && !isLocal(at),
      'HOST is no loopback address, so clients can pass the gateway':
        isEmbedded(at) && !LOOPBACK.test(at.inEffect('HOST')),
      'PLAINTEXT_ALLOWED is set, so an engine is reached without TLS': at.isOn('PLAINTEXT_ALLOWED'),
      'PROVIDER_ALLOW_HTTP is true, so the provider is reached without TLS':
        at.isOn('PROVIDER_ALLOW_HTTP'),
      'the gateway shows /metrics to any client': at.showsMetrics && !isLocal(at),
    }),
    byHand: 'the certificate, and who renews it',
  },
  {
    section: '9 backups',
    lines: () => ({}),
    byHand: 'a copy off the machine each hour, a manifest elsewhere each day, a drill each month',
  },
  { section: '10 alerts', lines: () => ({}), byHand: 'a test alert that came to a person' },
  { section: '11 upgrade', lines: () => ({}), byHand: 'a rehearsal on a copy, forth and back' },
  {
    section: '13 bad day',
    lines: () => ({}),
    byHand: 'two persons who may resolve, one who may acknowledge',
  },
];

const showsMetrics = async (url: string): Promise<boolean> => {
  const signal = AbortSignal.timeout(8_000);
  const response = await fetch(`${url}/metrics`, { signal }).catch(() => undefined);
  await response?.body?.cancel();
  return response?.ok === true;
};

/** `settings` are those in effect at `url`. Sends one request, and changes nothing. */
export const walkProduction = async (
  url: string,
  settings: readonly EffectiveSetting[],
): Promise<ProductionFinding[]> => {
  const byName = new Map(settings.map((one) => [one.name, one]));
  const inEffect = (name: string): string => byName.get(name)?.value ?? 'not set';
  const at: Installation = {
    url: new URL(url),
    inEffect,
    isGiven: (name) => (byName.get(name)?.origin ?? 'default') !== 'default',
    isOn: (name) => !['0', 'false', 'not set'].includes(inEffect(name)),
    showsMetrics: await showsMetrics(url),
  };
  return SECTIONS.map(({ section, lines, byHand }) => {
    const stated = lines(at);
    const missing = Object.keys(stated).filter((line) => stated[line]);
    return { section, missing, ...(byHand === undefined ? {} : { byHand }) };
  });
};

export const showProduction = (found: readonly ProductionFinding[]): void => {
  print('', styled('bold', 'Production: the sections of docs/production.md'));
  const seen = found.flatMap(({ section, missing, byHand }) => {
    if (missing.length > 0)
      return missing.map((line) => [section, styled('red', `missing: ${line}`)]);
    return byHand === undefined ? [[section, styled('green', 'well')]] : [];
  });
  const byHand = found.flatMap(({ section, byHand }) =>
    byHand === undefined ? [] : [[section, `yours to see to: ${byHand}`]],
  );
  print(...columns([...seen, ...byHand]));
};

export const missingOf = (found: readonly ProductionFinding[]): string[] =>
  found.flatMap(({ section, missing }) =>
    missing.map((line) => `not ready for production: ${section}: ${line}`),
  );
