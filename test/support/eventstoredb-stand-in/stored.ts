export type Stored = {
  stream: string;
  revision: number;
  id: string;
  type: string;
  contentType: string;
  /** Base64. */
  data: string;
  metadata: string;
  position: bigint;
  created: number;
};
