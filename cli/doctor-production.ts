/** `payments doctor --production`: walks docs/production.md against the settings in effect, section by section. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import type { EffectiveSetting } from '../shared/runtime/config.ts';
import { STRIPE_API_URL_DEFAULT } from '../shared/runtime/settings/table.ts';
import { columns, print, styled } from './output.ts';

/** One section of docs/production.md; `byHand` lists what no program can check. */
type ProductionFinding = { section: string; missing: string[]; byHand?: string };

const LOOPBACK = /^(localhost|127\.[0-9.]+|\[?::1\]?)$/;
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

const BY_HAND: Readonly<Record<string, string>> = {
  '1 shape': 'an encrypted disk for a year of payments, clocks by NTP',
  '2 secrets': 'a copy of each secret and of the sealing key in a vault',
  '4 provider': 'the road of the card number, as your acquirer has accepted it',
  '7 TLS': 'the certificate, and who renews it',
  '9 backups':
    'a copy off the machine each hour, a manifest elsewhere each day, a drill each month',
  '10 alerts': 'a test alert that came to a person',
  '11 upgrade': 'a rehearsal on a copy, forth and back',
  '13 bad day': 'two persons who may resolve, one who may acknowledge',
};

/** Whether any client of that address can read it. */
const showsMetrics = async (url: string): Promise<boolean> => {
  const signal = AbortSignal.timeout(8_000);
  const response = await fetch(`${url}/metrics`, { signal }).catch(() => undefined);
  await response?.body?.cancel();
  return response?.ok === true;
};

/** The facts that the sections judge; `isOn` is false for a setting that is 0, false or not set. */
const installationAt = async (url: string, settings: readonly EffectiveSetting[]) => {
  const byName = new Map(settings.map((one) => [one.name, one]));
  const inEffect = (name: string): string => byName.get(name)?.value ?? 'not set';
  return {
    url: new URL(url),
    inEffect,
    isGiven: (name: string) => (byName.get(name)?.origin ?? 'default') !== 'default',
    isOn: (name: string) => !['0', 'false', 'not set'].includes(inEffect(name)),
    showsMetrics: await showsMetrics(url),
  };
};
type Installation = Awaited<ReturnType<typeof installationAt>>;

/** By section, a line that is missing and whether it is. */
const linesOf = ({ url, inEffect, isGiven, isOn, showsMetrics }: Installation) => {
  const isElsewhere = !LOOPBACK.test(url.hostname);
  const isEmbedded = inEffect('EVENTSTOREDB_URL') === 'not set';
  const isStripe = inEffect('PROVIDER') === 'stripe';
  const isWithin = (name: string) =>
    isGiven(name) && liesWith(inEffect(name), inEffect('DATA_DIR'));
  const sections: Record<string, Record<string, boolean>> = {
    '1 shape': {
      'DATA_DIR is not set, so the data lies in the folder of the code':
        !isGiven('DATA_DIR') && isEmbedded,
    },
    '2 secrets': {
      'IDEMPOTENCY_SECRET_FILE is not set, so each copy of the log has the secret':
        !isGiven('IDEMPOTENCY_SECRET'),
      'WEBHOOK_SECRET_FILE is not set, so each copy of the log has the secret':
        !isGiven('WEBHOOK_SECRET'),
      'PERSONAL_DATA_KEK_FILE is not set, so a thief of the data folder can read personal data':
        !isGiven('PERSONAL_DATA_KEK'),
      'SEALING_KEY_FILE is not set, so a thief of the data folder can forge the seals':
        isEmbedded && !isGiven('SEALING_KEY_FILE'),
      'SEALING_KEY_FILE is on the volume of DATA_DIR, and belongs on another':
        isWithin('SEALING_KEY_FILE'),
      'SEALED_HEAD_FILE is on the volume of DATA_DIR, and belongs on another':
        isWithin('SEALED_HEAD_FILE'),
    },
    '3 tokens': {
      'JWT_JWKS_URL is not set: tokens are to come from an issuer':
        !isOn('JWT_JWKS_URL') && !isOn('JWT_JWKS_FILE'),
      'JWT_ISSUER is not set': !isGiven('JWT_ISSUER'),
      'JWT_AUDIENCE is not set': !isGiven('JWT_AUDIENCE'),
      'JWT_MERCHANT_CLAIM is not set, so the merchant is guessed': !isGiven('JWT_MERCHANT_CLAIM'),
    },
    '4 provider': {
      'PROVIDER is the simulator, which moves no money': inEffect('PROVIDER') === 'simulator',
      'STRIPE_LIVE is not true, so no money moves': isStripe && !isOn('STRIPE_LIVE'),
      'STRIPE_API_URL is not that of Stripe, so a rehearsal takes the payments':
        isStripe && inEffect('STRIPE_API_URL') !== STRIPE_API_URL_DEFAULT,
      "STRIPE_WEBHOOK_SECRET_FILE is not set, so Stripe's webhooks are rejected":
        isStripe && !isOn('STRIPE_WEBHOOK_SECRET'),
      'RECONCILE_INTERVAL_MS is 0, so log and ledger are never compared':
        !isOn('RECONCILE_INTERVAL_MS'),
    },
    '5 settings': {
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
    },
    '7 TLS': {
      'the service was reached without TLS from another machine':
        url.protocol !== 'https:' && isElsewhere,
      'HOST is no loopback address, so clients can pass the gateway':
        isEmbedded && !LOOPBACK.test(inEffect('HOST')),
      'PLAINTEXT_ALLOWED is set, so an engine is reached without TLS': isOn('PLAINTEXT_ALLOWED'),
      'PROVIDER_ALLOW_HTTP is true, so the provider is reached without TLS':
        isOn('PROVIDER_ALLOW_HTTP'),
      'the gateway shows /metrics to any client': showsMetrics && isElsewhere,
    },
  };
  return sections;
};

/** `settings` are those in effect at `url`. Sends one request, and changes nothing. */
export const walkProduction = async (url: string, settings: readonly EffectiveSetting[]) => {
  const sections = linesOf(await installationAt(url, settings));
  return Object.keys({ ...sections, ...BY_HAND }).map((section) => {
    const lines = sections[section] ?? {};
    const missing = Object.keys(lines).filter((line) => lines[line]);
    return { section, missing, ...(BY_HAND[section] && { byHand: BY_HAND[section] }) };
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
