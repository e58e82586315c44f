/** No problem repeats a part that may hold a password. */
import { X509Certificate } from 'node:crypto';
import { orElse } from '../error-text.ts';
import { type Report, readText } from './files.ts';

/** The client knows two more, and ignores one of them. */
const OPTIONS: Record<string, 'number' | 'boolean' | 'file' | 'text'> = {
  maxDiscoverAttempts: 'number',
  connectionName: 'text',
  defaultDeadline: 'number',
  discoveryInterval: 'number',
  gossipTimeout: 'number',
  keepAliveInterval: 'number',
  keepAliveTimeout: 'number',
  nodePreference: 'text',
  tls: 'boolean',
  tlsCAFile: 'file',
  userCertFile: 'file',
  userKeyFile: 'file',
};
const OPTION_NAMES = Object.keys(OPTIONS);
const flat = (name: string): string => name.toLowerCase().replace(/[_-]/g, '');
const PORT_MAX = 65_535;
const ADDRESS =
  /^esdb(?:\+discover)?:\/\/(?:(?<user>[^@/?]*)@)?(?<hosts>[^@/?]+)\/?(?:\?(?<query>.*))?$/i;

const hostProblem = (host: string): string | undefined => {
  const match = /^(?<name>[^\s:$+!*'(),;[\]{}|"%~#<>=&]+)(?::(?<port>\d+))?$/.exec(host);
  if (match === null) return 'has a host that is not host:port';
  const port = Number(match.groups?.port ?? 2113);
  return port < 1 || port > PORT_MAX ? `has a port that is not 1 to ${PORT_MAX}` : undefined;
};

const userProblem = (user: string | undefined, isSecure: boolean): string | undefined => {
  if (user === undefined) {
    return isSecure
      ? 'needs user:password@ before the host, unless it ends in ?tls=false'
      : undefined;
  }
  if (!/^[^:]+:[^:]+$/.test(user))
    return 'has a login that is not user:password; a : or @ in it is written %3A or %40';
  return orElse(undefined, () => decodeURIComponent(user)) === undefined
    ? 'has a login with a % that is not followed by two hex digits; a % is written %25'
    : undefined;
};

const isCertificate = (pem: string): boolean =>
  orElse(false, () => new X509Certificate(pem) !== undefined);

const fileProblems = (name: string, file: string): string[] => {
  const problems: string[] = [];
  const report: Report = (problem) => void problems.push(`has a ${name}, which ${problem}`);
  const pem = readText(file, report);
  if (pem !== undefined && name !== 'userKeyFile' && !isCertificate(pem))
    report('holds no certificate in PEM');
  return problems;
};

const optionProblems = (pair: string): string | string[] => {
  const [given = '', ...rest] = pair.split('=');
  const value = rest.join('=');
  const name = OPTION_NAMES.find((known) => flat(known) === flat(given));
  if (name === undefined) return `has an unknown option; known are ${OPTION_NAMES.join(', ')}`;
  if (value === '') return `has ${name} without a value`;
  const kind = OPTIONS[name];
  if (kind === 'number' && !/^\d+$/.test(value)) return `has a ${name} that is no whole number`;
  if (kind === 'boolean' && !/^(true|false)$/.test(value))
    return `has ${name} neither true nor false`;
  return kind === 'file' ? fileProblems(name, decodeURIComponent(value)) : [];
};

/** Without the setting's name. A relative path counts from the process's folder. */
export const eventStoreAddressProblems = (url: string): string[] => {
  const { hosts, user, query } = ADDRESS.exec(url)?.groups ?? {};
  if (hosts === undefined) return ['must be an address such as esdb://localhost:2113?tls=false'];
  const options = query === undefined || query === '' ? [] : query.split('&');
  const isSecure = !options.some((option) => option.toLowerCase() === 'tls=false');
  return [
    userProblem(user, isSecure),
    ...hosts.split(',').map(hostProblem),
    ...options.flatMap(optionProblems),
  ].filter((problem) => problem !== undefined);
};
