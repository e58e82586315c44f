/** An issuer's keys (gaps §10): in its outage valid for a day; unknown ones cause at most one fetch in 30 s. */
import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWTHeaderParameters,
} from 'jose';
import { backOffMs } from '../../runtime/back-off.ts';

export class KeysOutOfReach extends Error {
  override name = 'KeysOutOfReach';
}

type IssuerKeysOptions = {
  url: string;
  onFailure?: ((error: unknown) => void) | undefined;
  nowMs?: () => number;
};

const FRESH_MS = 600_000;
const LAST_GOOD_MS = 86_400_000;
const UNKNOWN_KEY_MS = 30_000;
const BACK_OFF = { minMs: 100, maxMs: 30_000 };
const LOAD_MS_MAX = 2_000;
const BODY_BYTES_MAX = 65_536;

const readCapped = async ({ body }: Response): Promise<string> => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.byteLength;
    // Leaving the loop ends the download.
    if (bytes > BODY_BYTES_MAX) throw new Error(`the key set is above ${BODY_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
};

const loadKeySet = async (url: string): Promise<ReturnType<typeof createLocalJWKSet>> => {
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const signal = AbortSignal.timeout(LOAD_MS_MAX);
  const response = await fetch(url, { headers, redirect: 'manual', signal });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the address of the key set answered ${response.status}`);
  }
  return createLocalJWKSet(JSON.parse(await readCapped(response)) as JSONWebKeySet);
};

export const followIssuerKeys = (options: IssuerKeysOptions) => {
  const { url, onFailure = () => undefined, nowMs = () => performance.now() } = options;
  const startedAtMs = nowMs();
  let loaded: { keys: ReturnType<typeof createLocalJWKSet>; atMs: number } | undefined;
  let failures = 0;
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let retryAtMs = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;

  const load = async (): Promise<void> => {
    triedAtMs = nowMs();
    try {
      loaded = { keys: await loadKeySet(url), atMs: triedAtMs };
      failures = 0;
    } catch (error) {
      failures += 1;
      retryAtMs = nowMs() + backOffMs(BACK_OFF, failures);
      onFailure(error);
    }
  };
  const loadOnce = (): Promise<void> => {
    loading ??= load().finally(() => {
      loading = undefined;
    });
    return loading;
  };

  const keysYoungerThan = (ageMs: number) =>
    loaded !== undefined && nowMs() - loaded.atMs < ageMs ? loaded.keys : undefined;

  const currentKeys = async () => {
    const mayLoad = loading !== undefined || nowMs() >= retryAtMs;
    if (mayLoad && keysYoungerThan(FRESH_MS) === undefined) {
      const underWay = loadOnce();
      // While the address fails, a token that the last keys can verify does not wait for it.
      if (failures === 0 || keysYoungerThan(LAST_GOOD_MS) === undefined) await underWay;
    }
    const keys = keysYoungerThan(LAST_GOOD_MS);
    if (keys === undefined) throw new KeysOutOfReach('the keys of the issuer cannot be loaded');
    return keys;
  };

  const keysAfterLoad = async (mayLoad: () => boolean, unknown: Error) => {
    const isDue = loading !== undefined || nowMs() - triedAtMs >= UNKNOWN_KEY_MS;
    const loads = isDue && mayLoad();
    if (loads) await loadOnce();
    // The issuer may know the key, so the token may be good.
    if (failures > 0) throw new KeysOutOfReach('the keys of the issuer cannot be loaded anew');
    if (!loads) throw unknown;
    return currentKeys();
  };

  return {
    /** Throws KeysOutOfReach, and jose's JWKSNoMatchingKey where no key of the issuer fits. */
    find: async (
      header: JWTHeaderParameters,
      token: FlattenedJWSInput,
      mayLoad: () => boolean,
    ): Promise<CryptoKey> => {
      const keys = await currentKeys();
      try {
        return await keys(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        return (await keysAfterLoad(mayLoad, error))(header, token);
      }
    },
    /** While the address fails: since the last load, else since the start. 0 while it does not. */
    outdatedSeconds: (): number =>
      failures === 0 ? 0 : Math.floor((nowMs() - (loaded?.atMs ?? startedAtMs)) / 1000),
  };
};
export type IssuerKeys = ReturnType<typeof followIssuerKeys>;
