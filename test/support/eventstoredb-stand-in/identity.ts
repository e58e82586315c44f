/** The calls by which a server says who it is: its version, and the members of its cluster. */
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import featuresPb from '@eventstore/db-client/generated/serverfeatures_pb.js';
import type { Server, sendUnaryData } from '@grpc/grpc-js';
import type { StandInOptions } from './log.ts';

const { ClusterInfo, EndPoint, MemberInfo } = gossipPb;
const { SupportedMethods } = featuresPb;

const { FOLLOWER, LEADER, UNKNOWN } = MemberInfo.VNodeState;

const member = (
  port: number,
  state: (typeof MemberInfo.VNodeState)[keyof typeof MemberInfo.VNodeState],
) => {
  const endPoint = new EndPoint().setAddress('127.0.0.1').setPort(port);
  return new MemberInfo().setHttpEndPoint(endPoint).setIsAlive(true).setState(state);
};

/**
 * `port` is asked late; `followers` are members that no client can connect to. While they elect, no member
 * says that it leads or follows.
 */
export function addIdentity(
  server: Server,
  port: () => number,
  isElecting: () => boolean,
  count: () => void,
  { followers = 0, version = '24.10.9' }: Pick<StandInOptions, 'followers' | 'version'>,
): void {
  const getSupportedMethods = (_call: unknown, callback: sendUnaryData<object>): void => {
    callback(null, new SupportedMethods().setEventStoreServerVersion(version));
  };
  const read = (_call: unknown, callback: sendUnaryData<object>): void => {
    count();
    const info = new ClusterInfo();
    const [first, others] = isElecting() ? [UNKNOWN, UNKNOWN] : [LEADER, FOLLOWER];
    info.addMembers(member(port(), first));
    for (let other = 1; other <= followers; other += 1) {
      info.addMembers(member(port() + other, others));
    }
    callback(null, info);
  };
  server.addService(featuresGrpc.ServerFeaturesService as never, { getSupportedMethods } as never);
  server.addService(gossipGrpc.GossipService as never, { read } as never);
}
