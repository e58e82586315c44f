/** The one list of what needs a person, and the acknowledgement of what would stay in it (gaps §25). */
import {
  appendControl,
  type ControlReads,
  readControl,
} from '../../../shared/event-store/control-stream.ts';
import { RevisionConflict } from '../../../shared/event-store/errors.ts';
import type { EventStore } from '../../../shared/event-store/port.ts';
import { RETRY_LATER, reject } from '../../../shared/http/errors.ts';
import { contextOf, senderOf } from '../../../shared/http/request.ts';
import {
  jsonBody,
  okJson,
  type RoutesOf,
  routeWith,
  sendJson,
} from '../../../shared/http/route.ts';
import { inTurn } from '../../../shared/http/server/shares.ts';
import { ATTENTION_STREAM } from '../../../shared/payment/audit-events.ts';
import {
  AttentionAcknowledgement,
  type AttentionItem,
  AttentionList,
  AttentionNote,
  AttentionParameters,
} from './contract.ts';
import { isAcknowledgeable, itemPlace } from './items.ts';

export type AttentionApi = {
  store: ControlReads & Pick<EventStore, 'append'>;
  /** Oldest first; `*` is all. */
  attention(merchantId: string): Promise<AttentionItem[]>;
};

const UNKNOWN = ['nothing that needs a person has this id'];
const TWO_AT_ONCE = ['another acknowledgement was recorded at the same moment; try again'];

const cursorOf = (item: AttentionItem): string =>
  Buffer.from(itemPlace(item)).toString('base64url');

const route = routeWith<AttentionApi>();

export const ATTENTION_ROUTES = {
  listAttention: route({
    request: { query: AttentionParameters },
    responses: okJson(AttentionList),
    handle: async ({ attention }, { principal, query }, reply) => {
      const { cursor: after = '', reason, limit } = query;
      const all = await inTurn('attention', reply, () => attention(principal.merchantId));
      if (all === undefined) return reply;
      const left = all.filter(
        (item) => itemPlace(item) > after && (reason === undefined || item.reason === reason),
      );
      const items = left.slice(0, limit);
      const last = items.at(-1);
      const isMore = last !== undefined && left.length > limit;
      return sendJson(reply, { items, ...(isMore && { next: cursorOf(last) }) });
    },
  }),
  acknowledgeAttention: route({
    request: { person: true, ...jsonBody(AttentionNote) },
    responses: okJson(AttentionAcknowledgement),
    handle: async ({ store, attention }, { principal, content: { note } }, reply) => {
      const { itemId: id } = reply.request.params as { itemId: string };
      const all = await inTurn('attention', reply, () => attention(principal.merchantId));
      if (all === undefined) return reply;
      const item = all.find((one) => one.id === id);
      if (item === undefined) return reject(reply, 'NOT_FOUND', UNKNOWN);
      const { reason, next } = item;
      if (!isAcknowledgeable(item)) {
        const why = `${reason} is not acknowledged: it ends with its cause; next: ${next}`;
        return reject(reply, 'BUSINESS_RULE_VIOLATION', [why]);
      }
      const data = { id, reason: item.reason, note };
      const event = { type: 'AttentionAcknowledged', data } as const;
      const context = contextOf(senderOf(principal, reply));
      const { actor } = principal;
      try {
        const before = await readControl(store, ATTENTION_STREAM);
        const [stored] = await appendControl(store, ATTENTION_STREAM, before, [event], context);
        return sendJson(reply, { ...data, actor, acknowledgedAt: stored?.time });
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
        return reject(reply, 'SERVICE_UNAVAILABLE', TWO_AT_ONCE, RETRY_LATER);
      }
    },
  }),
} satisfies Partial<RoutesOf<'command-api', AttentionApi>>;
