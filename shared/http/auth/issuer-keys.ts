/**
 * The public keys of an issuer, fetched from its address (gaps §10). An outage of the issuer
 * is not ours: the last keys that were loaded go on verifying tokens for a day. However many tokens
 * name a key that is not among them, the address is asked once in 30 s.
 */
import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWTHeaderParameters,
} from 'jose';
import { backOffMs } from '../../runtime/back-off.ts';

/** The keys cannot be loaded, so it is not known whether the token is good. */
export class KeysOutOfReach extends Error {
  override name = 'KeysOutOfReach';
}

export type IssuerKeys = {
  /**
   * The key that a token names. `mayLoad` says whether an unknown key is worth a fetch. Throws
   * KeysOutOfReach, and jose's JWKSNoMatchingKey where no key of the issuer fits.
   */
  find(
    header: JWTHeaderParameters,
    token: FlattenedJWSInput,
    mayLoad: () => boolean,
  ): Promise<CryptoKey>;
  /** While the address fails: the seconds since the keys were last loaded, else since the start; 0 while it does not. */
  outdatedSeconds(): number;
};

export type IssuerKeysOptions = {
  url: string;
  /** Called after each load that failed. */
  onFailure?: ((error: unknown) => void) | undefined;
  /** A clock that never goes back, in milliseconds. */
  nowMs?: () => number;
};

/** From this age on the keys are loaded anew before they are used. */
const FRESH_MS = 600_000;
const LAST_GOOD_MS = 86_400_000;
/** A key that is not in the set is looked for at the issuer no more often than this. */
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

/** Throws where there is no key set at the address, in 2 s and 64 KiB. */
const loadKeySet = async (url: string): Promise<ReturnType<typeof createLocalJWKSet>> => {
  const response = await fetch(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    redirect: 'manual',
    signal: AbortSignal.timeout(LOAD_MS_MAX),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the address of the key set answered ${response.status}`);
  }
  return createLocalJWKSet(JSON.parse(await readCapped(response)) as JSONWebKeySet);
};

/** Follows the keys of an issuer; the address is first called when a token needs a key. */
export const followIssuerKeys = ({
  url,
  onFailure = () => undefined,
  nowMs = () => performance.now(),
}: IssuerKeysOptions): IssuerKeys => {
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
  /** One load at a time, which everybody waits for. */
  const loadOnce = (): Promise<void> => {
    loading ??= load().finally(() => {
      loading = undefined;
    });
    return loading;
  };

  const keysYoungerThan = (ageMs: number) =>
    loaded !== undefined && nowMs() - loaded.atMs < ageMs ? loaded.keys : undefined;

  const currentKeys = async () => {
    if (
      keysYoungerThan(FRESH_MS) === undefined &&
      (loading !== undefined || nowMs() >= retryAtMs)
    ) {
      const underWay = loadOnce();
      // While the address fails nobody waits for it who has keys already.
      if (failures === 0 || keysYoungerThan(LAST_GOOD_MS) === undefined) await underWay;
    }
    const keys = keysYoungerThan(LAST_GOOD_MS);
    if (keys === undefined) throw new KeysOutOfReach('the keys of the issuer cannot be loaded');
    return keys;
  };

  /** The keys after one more load, for a token whose key is not among the current ones. */
  const keysAfterLoad = async (mayLoad: () => boolean, unknown: Error) => {
    const isDue = loading !== undefined || nowMs() - triedAtMs >= UNKNOWN_KEY_MS;
    const loads = isDue && mayLoad();
    if (loads) await loadOnce();
    // The issuer may know the key, so the token is not known to be bad.
    if (failures > 0) throw new KeysOutOfReach('the keys of the issuer cannot be loaded anew');
    if (!loads) throw unknown;
    return currentKeys();
  };

  return {
    find: async (header, token, mayLoad) => {
      const keys = await currentKeys();
      try {
        return await keys(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        return (await keysAfterLoad(mayLoad, error))(header, token);
      }
    },
    outdatedSeconds: () =>
      failures === 0 ? 0 : Math.floor((nowMs() - (loaded?.atMs ?? startedAtMs)) / 1000),
  };
};
