/** The algorithms that tokens can be signed with, by the kind of the key (gaps §10). */

/** With the shared secret, whatever the settings allow besides. */
export const SECRET_ALGORITHM = 'HS256';

/** With the key pair of the data folder. */
export const LOCAL_KEY_ALGORITHM = 'ES256';

/** With the public keys of an issuer. */
export const PUBLIC_KEY_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
