/** A subscription to events of some types, for a store that delivers those of all. */
import type { EventType } from '../payment/events.ts';
import { isReadable } from './codec.ts';
import type { SubscriptionItem } from './port.ts';

/** The items without the events of other types; all of them where `types` is left out. */
export const ofTypes = (
  items: AsyncGenerator<SubscriptionItem>,
  types: readonly EventType[] | undefined,
): AsyncGenerator<SubscriptionItem> => (types === undefined ? items : chosen(items, types));

async function* chosen(
  items: AsyncGenerator<SubscriptionItem>,
  types: readonly EventType[],
): AsyncGenerator<SubscriptionItem> {
  for await (const item of items) {
    if (item.kind !== 'events') yield item;
    else {
      const events = item.events.filter((e) => !isReadable(e) || types.includes(e.event.type));
      if (events.length > 0) yield { kind: 'events', events };
    }
  }
}
