import { jsonEvent, NO_STREAM, type StreamMetadata } from '@eventstore/db-client';
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { callOutcomeOf } from './call-outcome.ts';
import { addressOf, type StoreClient } from './client.ts';
import { inTime, swallow } from './connection.ts';

type Right = 'allowed' | 'refused' | 'unknown';

/** `version` is null, and `members` empty, where the server does not say. */
export type ServerFacts = Awaited<ReturnType<typeof askServer>>;

const STATE_NAMES = new Map(
  Object.entries(gossipPb.MemberInfo.VNodeState).map(([name, number]) => [
    number as number,
    name.toLowerCase(),
  ]),
);

type Gossip = InstanceType<typeof gossipPb.ClusterInfo>;
type Stubs = {
  execute<S, T>(stub: S, name: string, action: (client: never) => Promise<T>): Promise<T>;
  capabilities: Promise<{ serverVersion: string }>;
};
const stubsOf = (client: StoreClient): Stubs => client as unknown as Stubs;

const versionOf = async (client: StoreClient): Promise<string | null> => {
  const { serverVersion } = await stubsOf(client).capabilities;
  return /\d/.test(serverVersion) ? serverVersion : null;
};

const membersOf = async (client: StoreClient) => {
  const info = await stubsOf(client).execute(
    gossipGrpc.GossipClient,
    'gossip',
    (stub: InstanceType<typeof gossipGrpc.GossipClient>) =>
      new Promise<Gossip>((resolve, reject) => {
        stub.read(new sharedPb.Empty(), (error: Error | null, found: Gossip) =>
          error === null ? resolve(found) : reject(error),
        );
      }),
  );
  return info.getMembersList().map((member) => ({
    address: `${member.getHttpEndPoint()?.getAddress()}:${member.getHttpEndPoint()?.getPort()}`,
    state: STATE_NAMES.get(member.getState()) ?? 'unknown',
    isAlive: member.getIsAlive(),
  }));
};

const rightTo = (ms: number, work: () => Promise<unknown>): Promise<Right> =>
  inTime(ms, work()).then(
    () => 'allowed',
    (error) => (callOutcomeOf(error) === 'refused' ? 'refused' : 'unknown'),
  );

/** Tries each right on a new stream, which may stay. Throws as `addressOf`. */
export const askServer = async (url: string, questionMsMax = 2_000) => {
  const address = addressOf(url);
  const client = address.client();
  const ask = <T>(work: Promise<T>, otherwise: T): Promise<T> =>
    inTime(questionMsMax, work).catch(() => otherwise);
  const { credentials } = address;
  const may = (work: () => Promise<unknown>) => rightTo(questionMsMax, work);
  const stream = `doctor-${crypto.randomUUID()}`;
  const event = jsonEvent({ type: 'DoctorLooked', data: {} });
  const metadata: StreamMetadata = { maxCount: 1 };
  try {
    const version = await ask(versionOf(client), null);
    const members = await ask(membersOf(client), []);
    const readAll = await may(async () => client.readAll({ maxCount: 1 }).toArray());
    const expectedRevision = NO_STREAM;
    const append = await may(() =>
      client.appendToStream(stream, event, { credentials, expectedRevision }),
    );
    // Without both rights the log is append-only by the server's own rule.
    const rewriteMetadata = await may(() =>
      client.setStreamMetadata(stream, metadata, { credentials, expectedRevision }),
    );
    const remove = await may(() => client.deleteStream(stream, { credentials }));
    const namesOneNode = !/^esdb\+discover:/i.test(url) && !/\/\/[^/?]*,/.test(url);
    /** tls=false: the server checks no user. */
    const isInsecure = !address.isSecure;
    return { version, members, namesOneNode, isInsecure, readAll, append, remove, rewriteMetadata };
  } finally {
    await inTime(questionMsMax, client.dispose()).catch(swallow);
  }
};
