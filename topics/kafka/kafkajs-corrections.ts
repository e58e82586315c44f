/**
 * Two corrections of kafkajs 2.2.4, which is no longer developed. They reach inner parts of one client by its
 * private symbol: no public option leads to a producer's cluster, and its classes by their files would be
 * corrected for every client. A version with other inner parts fails at its first connection.
 */
import type { Kafka } from 'kafkajs';

type Broker = {
  initProducerId(of: { transactionalId?: string; transactionTimeout: number }): Promise<unknown>;
};
type RequestQueue = { pending: unknown[]; scheduleCheckPendingRequests(): void };
type Cluster = {
  connectionPoolBuilder: {
    build(address?: object): Promise<{ pool: { requestQueue: RequestQueue }[] }>;
  };
  findGroupCoordinator(of: { groupId: string; coordinatorType: number }): Promise<Broker>;
  findControllerBroker(): Promise<Broker>;
};

const CREATE_CLUSTER = 'private:Kafka:createCluster';
const TRANSACTION_COORDINATOR = 1;

/** Called for each producer and each admin client of `kafka`. */
const onCluster = (kafka: Kafka, correct: (cluster: Cluster) => void): void => {
  const inner = kafka as unknown as Record<symbol, (options: object) => Cluster>;
  const key = Object.getOwnPropertySymbols(kafka).find((one) => one.description === CREATE_CLUSTER);
  const create = key && inner[key];
  if (key === undefined || create === undefined) throw new Error('kafkajs has other inner parts');
  inner[key] = (options) => {
    const cluster = create(options);
    correct(cluster);
    return cluster;
  };
};

/**
 * Each queue checks for pending requests a thousand times a second, even when idle, with a negative time-out of
 * which Node warns: 5 % of a core. A queue schedules a check when it adds one; no other is needed.
 */
const checkOnlyWherePending = ({ connectionPoolBuilder }: Cluster): void => {
  const build = connectionPoolBuilder.build;
  connectionPoolBuilder.build = async (address) => {
    const made = await build(address);
    for (const { requestQueue: queue } of made.pool) {
      const check = queue.scheduleCheckPendingRequests.bind(queue);
      queue.scheduleCheckPendingRequests = () => {
        if (queue.pending.length > 0) check();
      };
    }
    return made;
  };
};

/**
 * An idempotent producer takes an id of its own, with which no broker knows that it follows another one. Under
 * a transactional id it takes the id of the producer before it with the next epoch: of the older epoch, a
 * partition accepts nothing behind a message of the newer one, also outside a transaction (KIP-98).
 */
const followUnder = (transactionalId: string, cluster: Cluster): void => {
  const findController = cluster.findControllerBroker.bind(cluster);
  const group = { groupId: transactionalId, coordinatorType: TRANSACTION_COORDINATOR };
  const initProducerId: Broker['initProducerId'] = async (of) => {
    const coordinator = await cluster.findGroupCoordinator(group);
    return coordinator.initProducerId({ ...of, transactionalId });
  };
  cluster.findControllerBroker = async () =>
    Object.assign(Object.create(await findController()), { initProducerId });
};

/** Before the first `producer()` or `admin()`. Throws Error for another version of kafkajs. */
export const correct = (kafka: Kafka, transactionalId: string): Kafka => {
  onCluster(kafka, (cluster) => {
    checkOnlyWherePending(cluster);
    followUnder(transactionalId, cluster);
  });
  return kafka;
};
