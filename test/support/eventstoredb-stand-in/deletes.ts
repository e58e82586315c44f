/** The calls Delete (the stream can go on) and Tombstone (it is gone for good), at any revision. */
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { accessDenied, streamDeleted } from './faults.ts';
import type { Log } from './log.ts';
import { nameOf } from './messages.ts';

type Call = ServerUnaryCall<
  InstanceType<typeof streamsPb.DeleteReq> | InstanceType<typeof streamsPb.TombstoneReq>,
  object
>;

const { DeleteResp, TombstoneResp } = streamsPb;

/** Both calls over one log, for a user who may not make them where `isRefused`. */
export function makeDeletes(log: Log, isRefused = false) {
  const responding =
    (work: (stream: string) => void, response: () => object) =>
    ({ request }: Call, callback: sendUnaryData<object>): void => {
      if (isRefused) return void callback(accessDenied());
      const stream = nameOf(request.getOptions()?.getStreamIdentifier());
      if (log.removed.isTombstoned(stream)) return void callback(streamDeleted(stream));
      work(stream);
      callback(null, response());
    };
  return {
    delete: responding(log.softDelete, () => new DeleteResp()),
    tombstone: responding(log.tombstone, () => new TombstoneResp()),
  };
}
