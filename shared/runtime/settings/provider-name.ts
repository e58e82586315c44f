/** The name of the provider that events have (ADR-0247): it holds no secret, so it outlives the rotation of one. */

const LENGTH_MAX = 255;

/** The name of the provider at an address that is well formed: `http:` with its host and path. */
export const providerNameAt = (address: string): string => {
  const { host, pathname } = new URL(address);
  return `http:${host}${pathname.replace(/\/+$/, '')}`.slice(0, LENGTH_MAX);
};

/**
 * Whether a text is the name of a provider, to the letter. With the slashes of an address, one at the
 * end or a letter of the host in upper case it would be the name of none, and say nothing.
 */
export const isProviderName = (text: string): boolean => {
  if (text === 'simulator' || text === 'stripe') return true;
  // The port that one of the schemes leaves out stands in the name of the other.
  const addresses = ['http', 'https'].map((scheme) => text.replace(/^http:/, `${scheme}://`));
  return addresses.some((address) => URL.canParse(address) && providerNameAt(address) === text);
};
