/** Reports of the server of EVENTSTOREDB_URL for `payments doctor`: its nodes, and the rights of its user (docs/eventstoredb.md). */
import type { ServerFacts } from '../shared/event-store/eventstoredb/server-facts.ts';

/** `faults` keep the service from its work, `warnings` do not. */
export type EventStoreServerFinding = ServerFacts & { faults: string[]; warnings: string[] };

/** Measured, and served by their maker (docs/eventstoredb.md). */
const SUPPORTED = 'EventStoreDB 24.10 and KurrentDB 26';
const isSupported = (version: string): boolean => /^(24\.10|26)\./.test(version);

const versionWarnings = (version: string | null): string[] => {
  if (version === null || isSupported(version)) return [];
  return version.startsWith('23.10.')
    ? [`its maker no longer supports 23.10, which works as measured: ${SUPPORTED} are supported`]
    : [`the service was never measured on this version: ${SUPPORTED} are supported`];
};

const GIVE_RIGHTS = '`npm run eventstoredb:rights -- <user>` gives it that right';

const textsIn = (lines: (string | false)[]): string[] =>
  lines.filter((line) => typeof line === 'string');

const faultsOf = ({ readAll, append }: ServerFacts): string[] =>
  textsIn([
    readAll === 'refused' &&
      `the user may not read $all, so no read model can follow: ${GIVE_RIGHTS}`,
    append === 'refused' && `the user may not append: ${GIVE_RIGHTS}`,
  ]);

const warningsOf = (facts: ServerFacts): string[] => {
  const { version, members, namesOneNode, isInsecure, remove, rewriteMetadata } = facts;
  const may = [
    ...(remove === 'allowed' ? ['delete streams'] : []),
    ...(rewriteMetadata === 'allowed' ? ['rewrite their metadata'] : []),
  ].join(' and ');
  const who = isInsecure ? 'the server checks no user: any client may' : 'the user may';
  const hasNoLeader = members.length > 0 && members.every(({ state }) => state !== 'leader');
  return textsIn([
    may !== '' && `${who} ${may}, so the log is append-only by our word alone`,
    members.length > 1 &&
      namesOneNode &&
      'the address names one node of a cluster: name all of them, so that another can lead',
    hasNoLeader &&
      'no node leads, so nothing can be appended: wait for the election, or start the others',
    ...versionWarnings(version),
  ]);
};

/** Throws Error with one line for an address that cannot be read. */
export const lookAtEventStoreServer = async (url: string): Promise<EventStoreServerFinding> => {
  const { askServer } = await import('../shared/event-store/eventstoredb/server-facts.ts');
  const facts = await askServer(url);
  return { ...facts, faults: faultsOf(facts), warnings: warningsOf(facts) };
};

const versionText = (version: string | null): string => {
  if (version === null) return 'unknown: the server does not say';
  return isSupported(version) ? `${version}, supported` : version;
};

export const serverRows = (finding: EventStoreServerFinding): string[][] => [
  ['  version', versionText(finding.version)],
  ...finding.members.map(({ address, state, isAlive }) => [
    `  ${address}`,
    isAlive ? state : `${state}, not alive`,
  ]),
  ['  read $all', finding.readAll],
  ['  append', finding.append],
  ['  delete streams', finding.remove],
  ['  rewrite metadata', finding.rewriteMetadata],
];
