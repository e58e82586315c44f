/** Who sent a request, as its token says, and which request it was. */
export type Sender = { merchantId: string; actor: string; requestId: string };
