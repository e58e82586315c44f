/** The client's messages as commands, and responses in the form of the messages that they are for. */
import { BSON } from 'mongodb';
import type { Command } from './commands.ts';
import type { Document } from './documents.ts';

const HEADER = 16;
const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

const documentAt = (message: Buffer, at: number): Document =>
  BSON.deserialize(message.subarray(at, at + message.readInt32LE(at)));

/** The command of a message, whose longest list of documents may follow it in a section of its own. */
const commandIn = (message: Buffer): Command => {
  let command: Document = {};
  for (let at = HEADER + 4; at < message.length; ) {
    const isList = message[at] === 1;
    const end = at + 1 + message.readInt32LE(at + 1);
    if (isList) {
      const nameEnd = message.indexOf(0, at + 5);
      const documents: Document[] = [];
      for (let next = nameEnd + 1; next < end; next += message.readInt32LE(next))
        documents.push(documentAt(message, next));
      command[message.toString('utf8', at + 5, nameEnd)] = documents;
    } else command = { ...documentAt(message, at + 1), ...command };
    at = end;
  }
  return command as Command;
};

const queryIn = (message: Buffer): Command => {
  const nameEnd = message.indexOf(0, HEADER + 4);
  return { ...documentAt(message, nameEnd + 9), $db: 'admin' };
};

/** The first message on a connection is of the older form, and so is its response. */
const isOfOldForm = (message: Buffer): boolean => message.readInt32LE(12) === OP_QUERY;

/** The command of a whole message. */
export const commandOf = (message: Buffer): Command =>
  isOfOldForm(message) ? queryIn(message) : commandIn(message);

/** Flags and the kind of the only section; or flags, cursor and place, and one document. */
const BEFORE = { [OP_MSG]: Buffer.alloc(5), [OP_REPLY]: Buffer.alloc(20).fill(1, 16, 17) };

/** The response to a message. */
export const responseFor = (message: Buffer, response: Document): Buffer => {
  const opCode = isOfOldForm(message) ? OP_REPLY : OP_MSG;
  const before = BEFORE[opCode];
  const body = BSON.serialize(response);
  const frame = Buffer.alloc(HEADER + before.length + body.length);
  frame.writeInt32LE(frame.length, 0);
  frame.writeInt32LE(message.readInt32LE(4), 8);
  frame.writeInt32LE(opCode, 12);
  frame.set(before, HEADER);
  frame.set(body, HEADER + before.length);
  return frame;
};
