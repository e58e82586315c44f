/**
 * Checks each line of an export, as it is written and when it is verified: by its own hash, against the line
 * before it, in its stream and, where the export is whole, in the log.
 */
import {
  type Completeness,
  type ExportLine,
  expectedChain,
  LINES_START,
} from '../audit/export-lines.ts';
import { GENESIS_HASH } from '../shared/event-store/chain.ts';
import {
  hashReason,
  logReason,
  type StreamEnd,
  streamsCheck,
} from '../shared/event-store/verify-chain.ts';
import { type SealsAgainst, sealsCheck } from '../shared/event-store/verify-seals.ts';
import { jsonFieldsOf } from '../shared/runtime/json-fields.ts';

export const NOT_ITS_CHAIN = 'it was changed, or a line before it is missing, added or swapped';

/** `reasonFor` gives why a line is broken, and goes on after it. Only an export of the whole log is checked by its seals. */
export const lineCheck = (completeness: Completeness, against: SealsAgainst) => {
  const ends = new Map<string, StreamEnd>();
  const inStream = streamsCheck(ends);
  const seals = sealsCheck(against);
  const isWhole = completeness === 'log';
  let chain = LINES_START;
  let logHash = GENESIS_HASH;

  const reasonInChain = (line: ExportLine): string | undefined => {
    const isNext = line.chain === expectedChain(line, chain);
    chain = line.chain;
    return isNext ? undefined : NOT_ITS_CHAIN;
  };

  const reasonInStream = (line: ExportLine): string | undefined => {
    const { stream, revision, text } = line;
    const named = jsonFieldsOf(text);
    // The first event of a range may stand in the middle of its stream.
    if (completeness === 'range' && !ends.has(stream))
      ends.set(stream, { revision: revision - 1, hash: String(named.previousHash) });
    return inStream(line, named);
  };

  const reasonInLog = (line: ExportLine): string | undefined => {
    if (!isWhole) return undefined;
    const reason = logReason(line, logHash);
    const inSeals = seals.reasonFor(line);
    logHash = line.logHash ?? '';
    return reason ?? inSeals;
  };

  return {
    chain: () => chain,
    seals,
    reasonFor: (line: ExportLine): string | undefined => {
      // Each check carries its own end on, so none is left out.
      const reasons = [reasonInChain, reasonInStream, reasonInLog].map((check) => check(line));
      return hashReason(line) ?? reasons.find((reason) => reason !== undefined);
    },
  };
};
