/** Who may call: with a user of its own, the server turns away every other one. */
import grpc, { type Metadata } from '@grpc/grpc-js';
import { statusError } from './faults.ts';

type Call = { metadata: Metadata; emit(event: 'error', error: object): boolean };
type Handler = (call: never, callback: never) => void;

const unauthenticated = () => statusError(grpc.status.UNAUTHENTICATED, 'Unauthenticated');

/** The handlers, each of which first looks whether `user`, `name:password`, calls it. */
export const forUser = <H extends Record<string, Handler>>(
  user: string | undefined,
  handlers: H,
): Record<string, unknown> => {
  if (user === undefined) return handlers;
  const known = `Basic ${Buffer.from(user).toString('base64')}`;
  const checked = (handler: Handler) => (call: Call, callback?: (error: object) => void) => {
    if (call.metadata.get('authorization')[0] === known) handler(call as never, callback as never);
    else if (callback === undefined) call.emit('error', unauthenticated());
    else callback(unauthenticated());
  };
  return Object.fromEntries(Object.entries(handlers).map(([name, own]) => [name, checked(own)]));
};
