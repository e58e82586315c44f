/** The name of a provider in events (ADR-0247). It holds no secret, and outlives the change of one. */

const LENGTH_MAX = 255;

/** `http:` with host and path. */
export const providerNameAt = (address: string): string => {
  const { host, pathname } = new URL(address);
  return `http:${host}${pathname.replace(/\/+$/, '')}`.slice(0, LENGTH_MAX);
};

/** To the letter: with a final slash or a host in upper case it would silently be the name of none. */
export const isProviderName = (text: string): boolean => {
  if (text === 'simulator' || text === 'stripe') return true;
  // The port that one of the schemes leaves out stands in the name of the other.
  const addresses = ['http', 'https'].map((scheme) => text.replace(/^http:/, `${scheme}://`));
  return addresses.some((address) => URL.canParse(address) && providerNameAt(address) === text);
};
