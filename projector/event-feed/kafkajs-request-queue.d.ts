/** kafka-connection.ts corrects this inner part of kafkajs, for which the package has no types. */
declare module 'kafkajs/src/network/requestQueue/index.js' {
  type RequestQueue = { pending: unknown[]; scheduleCheckPendingRequests(): void };
  const RequestQueue: { prototype: RequestQueue };
  export default RequestQueue;
}
