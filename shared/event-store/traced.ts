import { withSpan } from '../runtime/tracing.ts';
import type { EventStore } from './port.ts';

const familyOf = (stream: string): string => stream.split('-', 1)[0] ?? '';

/** The engine's name. */
export const tracedStore = (store: EventStore, system: string): EventStore => {
  const spanOf = (operation: 'append' | 'read', stream: string) => ({
    name: `${operation} ${familyOf(stream)}`,
    kind: 'client' as const,
    attributes: { 'db.system.name': system, 'db.operation.name': operation },
  });
  return {
    ...store,
    append: (stream, expected, events) =>
      withSpan(spanOf('append', stream), () => store.append(stream, expected, events)),
    readStream: (stream) => withSpan(spanOf('read', stream), () => store.readStream(stream)),
  };
};
