/** What goes wrong on demand: planned faults by kind of call, a frozen server, broken connections. */
import grpc, { type Server } from '@grpc/grpc-js';

/**
 * What happens to a call: no answer, an end without one, a broken connection, an error, a delay; a read that
 * is cut gives two events, and no more.
 */
export type Fault =
  | 'silent'
  | 'clean end'
  | 'reset'
  | 'unavailable'
  | 'not leader'
  | 'slow'
  | 'cut';
/**
 * What only an append can meet: it is stored and its answer is lost, or it is told a wrong end. On a
 * stream of appends also: it is rejected; it is stored and the stream ends; the answer comes twice,
 * or after one without a waiting caller.
 */
export type AppendFault =
  | Fault
  | 'answer lost'
  | 'wrong revision'
  | 'access denied'
  | 'cut off'
  | 'answered twice'
  | 'stray answer';
/** How the running subscriptions end. */
export type Drop = 'too slow' | 'clean end' | 'reset' | 'not leader' | 'silent';

/** How late an answer is that meets the fault `slow`. */
export const SLOW_MS = 60;

export const statusError = (
  code: grpc.status,
  details: string,
  metadata = new grpc.Metadata(),
) => ({
  name: 'Error',
  message: details,
  code,
  details,
  metadata,
});

/** What the server says to a user without the right to do it. */
export const accessDenied = () => {
  const metadata = new grpc.Metadata();
  metadata.set('exception', 'access-denied');
  return statusError(grpc.status.PERMISSION_DENIED, 'Access Denied', metadata);
};

/** What the server says of a tombstoned stream, read or appended to. */
export const streamDeleted = (stream: string) => {
  const metadata = new grpc.Metadata();
  metadata.set('exception', 'stream-deleted');
  metadata.set('stream-name', stream);
  const details = `Event stream '${stream}' is deleted.`;
  return statusError(grpc.status.FAILED_PRECONDITION, details, metadata);
};

/** `port` is asked late: it is known once the server is bound. */
export function makeFaults(server: Server, port: () => number) {
  const planned: Partial<Record<string, { fault: AppendFault; left: number }>> = {};
  const waiting: (() => void)[] = [];
  let frozen = false;
  let electing = false;
  return {
    /** The next `count` calls of a kind meet this fault; undefined ends it. */
    plan(kind: string, fault: AppendFault | undefined, count: number): void {
      if (fault === undefined) delete planned[kind];
      else planned[kind] = { fault, left: count };
    },
    next(kind: string): AppendFault | undefined {
      if (electing) return 'unavailable';
      const plan = planned[kind];
      if (plan === undefined) return undefined;
      plan.left -= 1;
      if (plan.left <= 0) delete planned[kind];
      return plan.fault;
    },
    freeze(on: boolean): void {
      frozen = on;
      if (!on) for (const work of waiting.splice(0)) work();
    },
    whenThawed(work: () => void): void {
      if (frozen) waiting.push(work);
      else work();
    },
    notLeader() {
      const metadata = new grpc.Metadata();
      metadata.set('exception', 'not-leader');
      metadata.set('leader-endpoint-host', '127.0.0.1');
      metadata.set('leader-endpoint-port', String(port()));
      return statusError(grpc.status.NOT_FOUND, 'Leader info available', metadata);
    },
    unavailable: () => statusError(grpc.status.UNAVAILABLE, 'Server Is Not Ready'),
    reset: (): void => server.drain(`127.0.0.1:${port()}`, 1),
    elect(on: boolean): void {
      electing = on;
    },
    isElecting: (): boolean => electing,
  };
}

export type Faults = ReturnType<typeof makeFaults>;
