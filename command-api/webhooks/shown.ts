/** A webhook endpoint as the routes show it: from its events, and from how far its delivery is. */
import {
  type DeliveryRow,
  isFailing,
  parseDeliveryRow,
} from '../../shared/webhooks/delivery-row.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import type { Endpoint } from '../../shared/webhooks/endpoints.ts';
import { isWanted, SUBSCRIBABLE_TYPES } from '../../shared/webhooks/message-types.ts';
import type { WebhookEndpoint } from './contract.ts';

const timeOf = (ms: number | null | undefined): string | null =>
  ms === null || ms === undefined ? null : new Date(ms).toISOString();

const statusOf = ({ disabled }: Endpoint, row: DeliveryRow | undefined) => {
  if (disabled !== undefined) return 'DISABLED';
  return row !== undefined && isFailing(row) ? 'FAILING' : 'ENABLED';
};

/** An endpoint with a row of its delivery, as read before; undefined where there is none yet. */
export const shown = (endpoint: Endpoint, row: DeliveryRow | undefined): WebhookEndpoint => {
  const { endpointId, url, description, apiVersion, disabled, createdAt, updatedAt } = endpoint;
  const { oldSecretExpiresAt } = endpoint;
  return {
    id: endpointId,
    url,
    eventTypes: SUBSCRIBABLE_TYPES.filter((type) => isWanted(endpoint, type)),
    ...(description !== undefined && { description }),
    apiVersion,
    status: statusOf(endpoint, row),
    failingSince: timeOf(row?.failingSince),
    disabledReason: disabled?.reason ?? null,
    oldestWaiting: timeOf(row?.oldestWaiting),
    ...(oldSecretExpiresAt !== undefined && { oldSecretExpiresAt }),
    createdAt,
    updatedAt,
  };
};

type Deliveries = Pick<DeliveryStore, 'load'>;

/**
 * How far the delivery to an endpoint is. A command reads it before it stores anything: a response that
 * fails after that would deny what was stored. Throws what the delivery store throws.
 */
export const deliveryOf = async (
  deliveries: Deliveries,
  endpointId: string,
): Promise<DeliveryRow | undefined> => {
  const stored = await deliveries.load(endpointId);
  return stored && parseDeliveryRow(stored.text);
};

/** Throws what the delivery store throws. */
export const showEndpoint = async (
  deliveries: Deliveries,
  endpoint: Endpoint,
): Promise<WebhookEndpoint> => shown(endpoint, await deliveryOf(deliveries, endpoint.endpointId));
