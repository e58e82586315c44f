/** The algorithms that tokens can be signed with, by the kind of the key (gaps §10). */

/** For the shared secret; no setting can allow another. */
export const SECRET_ALGORITHM = 'HS256';

/** For the key pair of the data folder. */
export const LOCAL_KEY_ALGORITHM = 'ES256';

/** For the public keys of an issuer; no HMAC among them, or a public key could serve as a secret. */
export const PUBLIC_KEY_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
