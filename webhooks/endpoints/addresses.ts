/** Allows public addresses and `WEBHOOK_ALLOWED_NETWORKS`; checked at registration and at each connection. */
import { BlockList, isIP } from 'node:net';

/** IANA's special-purpose IPv4 addresses, multicast, and the host of a machine of Azure. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
/** The only block of public IPv6 addresses, and the special ones in it. */
const GLOBAL_IPV6 = ['2000::/3'];
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

const listOf = (networks: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix = ''] = network.split('/');
    list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return list;
};

const special = listOf([...SPECIAL_IPV4, ...SPECIAL_IPV6]);
const globalIpv6 = listOf(GLOBAL_IPV6);

/** `allowed`: by the operator, also over http. A text that is no IP address, or has a zone, is refused. */
export type AddressKindOf = (address: string) => 'public' | 'allowed' | 'refused';

/** `allowedNetworks` as `10.0.0.0/8`. */
export const addressKinds = (allowedNetworks: readonly string[]): AddressKindOf => {
  const allowed = listOf(allowedNetworks);
  return (address) => {
    const family = isIP(address);
    if (family === 0 || address.includes('%')) return 'refused';
    // BlockList takes an IPv4 address that is mapped into IPv6 for the IPv4 address.
    if (allowed.check(address, familyOf(address))) return 'allowed';
    const isGlobal = family === 4 || globalIpv6.check(address, 'ipv6');
    return isGlobal && !special.check(address, familyOf(address)) ? 'public' : 'refused';
  };
};

export const NOT_PUBLIC = 'must be a public https address';
const URL_CHARACTERS_MAX = 2048;
const HTTPS_PORT = 443;
const UNPRIVILEGED_PORT_MIN = 1024;

/** Undefined where the host is no IP address. */
export const literalOf = ({ hostname }: Pick<URL, 'hostname'>): string | undefined => {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0 ? undefined : host;
};

/** Always the machine itself (RFC 6761). */
const LOCALHOST = /(^|\.)localhost\.?$/;

/** The URL standard drops some of them, so a checked address would not be the one that is sent. */
export const holdsControl = (text: string): boolean => /\p{Cc}/u.test(text);

/** An address as the URL standard writes it, which every client and browser reads alike; another text as it is. */
export const writtenUrl = (text: string): string =>
  URL.canParse(text) ? new URL(text).href : text;

/** Whether a page or an endpoint may be there. A name's addresses are not looked up. */
const isPublicHttps = (text: string, kindOf: AddressKindOf): boolean => {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text) || text.includes('#')) return false;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return false;
  const literal = literalOf(url);
  const kind = literal === undefined ? 'public' : kindOf(literal);
  if (kind === 'allowed') return true;
  if (LOCALHOST.test(url.hostname) && kindOf('127.0.0.1') === 'refused') return false;
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  const isPortAllowed = port === HTTPS_PORT || port >= UNPRIVILEGED_PORT_MIN;
  return kind === 'public' && url.protocol === 'https:' && isPortAllowed;
};

/** Why an endpoint may not have this URL (gaps §20); http needs a literal address of an allowed network. */
export const urlProblem = (
  text: string,
  kindOf: AddressKindOf,
  charactersMax = URL_CHARACTERS_MAX,
): string | undefined => {
  if (holdsControl(text)) return 'must not hold a control character';
  if (Math.max(text.length, writtenUrl(text).length) > charactersMax)
    return `must be at most ${charactersMax} characters`;
  return isPublicHttps(text, kindOf) ? undefined : NOT_PUBLIC;
};
