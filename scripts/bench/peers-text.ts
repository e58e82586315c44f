/** The comparison with other frameworks as text and as pictures. */
import { barChart } from './chart.ts';
import { cpuUsOf, type Outcome } from './rounds.ts';
import { goalsTable, number, roundsList, table } from './text.ts';

/** One service of the comparison; the first is ours. */
export type Contestant = { name: string; create: Outcome; get: Outcome };

/** How many times as much CPU as ours a peer takes, each as a multiple of its own bare rounds. */
const timesOurs = (peer: Outcome, ours: Outcome): number => ours.ofBare / peer.ofBare;

const cells = (outcome: Outcome): string[] => [
  number(cpuUsOf(outcome.ours)),
  outcome.ofBare.toFixed(2),
  number(outcome.ours.perSecond),
  number(outcome.ours.p99Ms),
];

/** The tables. `versions` are those of the peers' packages. */
export const peersText = (
  contestants: readonly Contestant[],
  leftOut: readonly { name: string; reason: string }[],
  versions: readonly string[],
): string => {
  const [ours, ...peers] = contestants;
  if (ours === undefined) throw new Error('this service was not measured');
  const goals = peers.map((peer) => {
    const rate = ours.create.ours.perSecond / peer.create.ours.perSecond;
    const create = number(timesOurs(peer.create, ours.create));
    return {
      what: `a create of ${peer.name}: its CPU divided by ours`,
      goal: '≥ 3 ×',
      before: '',
      now: `${create} × (GET ${number(timesOurs(peer.get, ours.get))} ×; ours has ${number(rate)} × its creates a second)`,
    };
  });
  const head = ['create: CPU µs', 'of bare', 'a second', 'p99 ms'];
  const columns = [...head, 'GET: CPU µs', 'of bare', 'a second', 'p99 ms'];
  const rows = contestants.map(({ name, create, get }) => [name, ...cells(create), ...cells(get)]);
  const lists = contestants.map(({ name, create, get }) =>
    roundsList({ [`${name}, create`]: create, [`${name}, GET`]: get }),
  );
  return [
    '![CPU of a create, beside other frameworks](pictures/peers-create.svg)',
    '![CPU of a GET, beside other frameworks](pictures/peers-get.svg)',
    goalsTable(goals),
    table(['', ...columns], rows),
    lists.join('\n'),
    `Versions: ${versions.join(', ')}.`,
    ...leftOut.map(({ name, reason }) => `${name} was left out: ${reason}`),
  ].join('\n\n');
};

/** A bar for each service. */
export const peersPictures = (contestants: readonly Contestant[]): Record<string, string> => {
  const chart = (title: string, of: (contestant: Contestant) => Outcome): string =>
    barChart(
      title,
      'µs',
      contestants.map((one, at) => ({
        name: one.name,
        value: cpuUsOf(of(one).ours),
        kind: at === 0 ? 'a' : 'bare',
      })),
    );
  return {
    'peers-create.svg': chart('CPU of one create', ({ create }) => create),
    'peers-get.svg': chart('CPU of one GET', ({ get }) => get),
  };
};
