/**
 * A storm between the processes of the service and their MongoDB: each process has a relay of its own,
 * which is frozen, cut, reset or loses bytes, while the server is killed, frozen and started again.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import type { Random } from './random.ts';
import { standInMongo } from './stand-in-process.ts';
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts';

/** How long a step stands at most before the next one, a short one and a long one by turns of chance. */
const SHORT_MS = 60;
const LONG_MS = 3000;
const DOWN_MS = 1500;
const STEPS_MAX = 12;

export type Storm = {
  /** `MONGODB_URL` through one more relay. */
  relayed(): Promise<string>;
  /** Some steps in an order of chance; after them every relay is open and the server runs. */
  blow(random: Random): Promise<string[]>;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Over a stand-in of its own, which loses everything when it is killed. */
export const startStorm = async (): Promise<Storm> => {
  const port = await freePort();
  let server = await standInMongo(port);
  const relays: TcpProxy[] = [];

  const ofRelay = (relay: TcpProxy): Record<string, () => void> => ({
    freeze: relay.freeze,
    thaw: relay.thaw,
    lose: relay.blackhole,
    reset: relay.reset,
    shut: relay.shut,
    open: relay.open,
    end: () => {
      relay.shut();
      relay.open();
    },
  });
  const ofServer = (random: Random): Record<string, () => Promise<void>> => ({
    'kill the server': async () => {
      await server[Symbol.asyncDispose]();
      await wait(random.between(0, DOWN_MS));
      server = await standInMongo(port);
    },
    'freeze the server': async () => {
      server.process.kill('SIGSTOP');
      await wait(random.between(0, LONG_MS));
      server.process.kill('SIGCONT');
    },
  });
  const step = async (random: Random): Promise<string> => {
    const at = random.between(0, relays.length - 1);
    const all = Object.entries({ ...ofRelay(relays[at] as TcpProxy), ...ofServer(random) });
    const [name, act] = all[random.between(0, all.length - 1)] as (typeof all)[number];
    await act();
    await wait(random.between(0, random.chance(0.5) ? SHORT_MS : LONG_MS));
    return name.includes('server') ? name : `${name} ${at}`;
  };

  return {
    relayed: async () => {
      const relay = await tcpProxy('127.0.0.1', port);
      relays.push(relay);
      return `mongodb://127.0.0.1:${relay.port}/payments`;
    },
    blow: async (random) => {
      const trail: string[] = [];
      for (let left = random.between(1, STEPS_MAX); left > 0; left -= 1)
        trail.push(await step(random));
      for (const relay of relays) relay.thaw();
      return trail;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(relays.map((relay) => relay.close()));
      await server[Symbol.asyncDispose]();
    },
  };
};
