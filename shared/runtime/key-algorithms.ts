/** For the shared secret; no setting can allow another (gaps §10). */
export const SECRET_ALGORITHM = 'HS256';

export const LOCAL_KEY_ALGORITHM = 'ES256';

/** For an issuer's keys. With an HMAC among them a public key could serve as a secret. */
export const PUBLIC_KEY_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
