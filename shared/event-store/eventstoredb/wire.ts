/** The part of protobuf's wire format in use (ADR-0007); writes field numbers below 16 alone. */
const VARINT = 0;
const EIGHT_BYTES = 1;
const BYTES = 2;
const FOUR_BYTES = 5;

export type Writer = {
  number(field: number, value: number): void;
  bytes(field: number, value: Uint8Array): void;
  text(field: number, value: string): void;
  message(field: number, write: () => void): void;
};

/** From the end, last field first. Throws RangeError beyond `bytesMax`. */
export function messageOf(bytesMax: number, write: (writer: Writer) => void): Buffer {
  const buffer = Buffer.allocUnsafe(bytesMax);
  let start = bytesMax;

  const varint = (value: number): void => {
    let length = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length += 1;
    start -= length;
    let rest = value;
    for (let at = start; at < start + length - 1; at += 1) {
      buffer.writeUInt8((rest % 128) + 128, at);
      rest = Math.floor(rest / 128);
    }
    buffer.writeUInt8(rest, start + length - 1);
  };
  const head = (field: number, end: number): void => {
    varint(end - start);
    varint(field * 8 + BYTES);
  };

  write({
    number: (field, value) => {
      varint(value);
      varint(field * 8 + VARINT);
    },
    bytes: (field, value) => {
      const end = start;
      start -= value.length;
      buffer.set(value, start);
      head(field, end);
    },
    text: (field, value) => {
      const end = start;
      start -= Buffer.byteLength(value);
      buffer.write(value, start);
      head(field, end);
    },
    message: (field, writeParts) => {
      const end = start;
      writeParts();
      head(field, end);
    },
  });
  return buffer.subarray(start);
}

export type Part = { from: number; to: number };

const cutOff = (): RangeError => new RangeError('a message that ends before its last field does');

function afterVarint(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at += 1) {
    if ((bytes[at] as number) < 128) return at + 1;
  }
  throw cutOff();
}

/** Exact up to 2^53. */
function varintAt(bytes: Uint8Array, from: number): number {
  let value = 0;
  for (let at = afterVarint(bytes, from) - 1; at >= from; at -= 1) {
    value = value * 128 + ((bytes[at] as number) % 128);
  }
  return value;
}

/** Throws RangeError where bytes are missing. */
export function eachField(
  bytes: Uint8Array,
  { from, to }: Part,
  visit: (field: number, part: Part) => void,
): void {
  let at = from;
  while (at < to) {
    const tag = varintAt(bytes, at);
    const kind = tag % 8;
    let start = afterVarint(bytes, at);
    if (kind === VARINT) at = afterVarint(bytes, start);
    else if (kind === EIGHT_BYTES) at = start + 8;
    else if (kind === FOUR_BYTES) at = start + 4;
    else if (kind === BYTES) {
      const length = varintAt(bytes, start);
      start = afterVarint(bytes, start);
      at = start + length;
    } else throw new RangeError('a field of no known kind');
    if (at > to) throw cutOff();
    visit((tag - kind) / 8, { from: start, to: at });
  }
}

export function partOf(bytes: Uint8Array, field: number, within?: Part): Part | undefined {
  let found: Part | undefined;
  eachField(bytes, within ?? { from: 0, to: bytes.length }, (number, part) => {
    if (number === field) found = part;
  });
  return found;
}

export const textAt = (bytes: Buffer, { from, to }: Part): string =>
  bytes.toString('utf8', from, to);

/** Exact up to 2^53; 0 where it is left out, as the format has it. */
export const numberAt = (bytes: Uint8Array, part: Part | undefined): number =>
  part === undefined ? 0 : varintAt(bytes, part.from);

export function bigintAt(bytes: Uint8Array, part: Part | undefined): bigint {
  const { from, to } = part ?? { from: 0, to: 0 };
  // Seven bytes of a varint have 49 bits.
  if (to - from <= 7) return BigInt(numberAt(bytes, part));
  let value = 0n;
  for (const byte of bytes.subarray(from, to).toReversed())
    value = value * 128n + BigInt(byte % 128);
  return value;
}
