/** One payment's events from an export, without a service (ADR-0059). */
import type { AuditBreak, AuditNoState, AuditTimeline } from '../audit/contract.ts';
import { type ExportLine, expectedChain } from '../audit/export-lines.ts';
import { foldProven, streamBreak, timelineOf, unopened } from '../audit/history.ts';
import type { Manifest } from '../audit/manifest.ts';
import { StateParameters } from '../audit/parameters.ts';
import { type State, stateOf } from '../audit/state.ts';
import { breakAt, GENESIS_HASH } from '../shared/event-store/chain.ts';
import { decode } from '../shared/event-store/codec.ts';
import type { StoredForm } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/events.ts';
import type { At } from './audit.ts';
import {
  chainAfter,
  exportLines,
  logCheck,
  NOT_A_LINE,
  NOT_ITS_CHAIN,
  NOT_ITS_END,
  readManifestOf,
  requireProof,
  signatureReason,
} from './export-file.ts';
import { CommandFailed } from './output.ts';
import { publicKeyIn } from './settings.ts';

/** `misfit`: why it is not proven what the payment was. */
export type EventsFile = {
  misfit: string | undefined;
  timeline(): Promise<Pick<AuditTimeline, 'events' | 'broken'>>;
  state(at: At): Promise<State | AuditNoState>;
};

type Part = { forms: StoredForm[]; misfit: AuditBreak | undefined };

const partOf = async (
  file: string,
  stream: string,
  manifest: Manifest,
  pass: (line: ExportLine) => void,
): Promise<Part> => {
  const forms: StoredForm[] = [];
  let last: ExportLine | undefined;
  let number = 0;
  const upTo = (line: ExportLine | undefined, reason: string): Part => {
    const next = { position: '?', stream, revision: (forms.at(-1)?.revision ?? -1) + 1 };
    const place = line?.stream === stream ? line : next;
    return { forms, misfit: breakAt(place, `line ${number} of ${file}: ${reason}`) };
  };
  for await (const line of exportLines(file)) {
    number += 1;
    if (line === undefined) return upTo(line, NOT_A_LINE);
    // In an export of the whole log the line before is the event before it in the log.
    const logHashBefore = manifest.completeness === 'log' ? (last?.logHash ?? GENESIS_HASH) : null;
    if (line.stream === stream) forms.push({ ...line, logHashBefore });
    if (line.chain !== expectedChain(line, chainAfter(last))) return upTo(line, NOT_ITS_CHAIN);
    pass(line);
    last = line;
  }
  return chainAfter(last) === manifest.chain
    ? { forms, misfit: undefined }
    : upTo(undefined, NOT_ITS_END);
};

/**
 * Opens an export. One that does not fit its seals or signature is shown, and ends the verb with 3; `key` is the
 * file of a public key that the seals must lead to or from. Throws CommandFailed when a file cannot be read, or the
 * export holds no event of the payment, or nothing to check with the key.
 */
export const openFileSource = async (
  paymentId: string,
  file: string,
  key?: string,
): Promise<EventsFile> => {
  const manifest = readManifestOf(file);
  const { completeness, log, signature } = manifest;
  const { seals, reasonFor } = logCheck(manifest, { log, publicKey: publicKeyIn(key) });
  let inLog: string | undefined;
  const { forms, misfit } = await partOf(file, streamOf(paymentId), manifest, (line) => {
    const reason = reasonFor(line);
    if (reason !== undefined) inLog ??= `position ${line.position}: ${reason}`;
  });
  inLog ??= completeness === 'log' ? seals.missing()?.reason : undefined;
  const unproven = misfit ? undefined : (inLog ?? signatureReason(manifest, seals.keys()));
  const isProof = signature !== undefined || seals.found().seals > 0;
  if ((misfit ?? unproven) === undefined) requireProof(file, key, isProof);
  const events = forms.map((form) => decode(form));
  const isPart = completeness === 'range';
  const broken = streamBreak(forms, events, isPart) ?? misfit;
  const [first] = events;
  if (first === undefined) {
    if (broken !== undefined) throw new CommandFailed(broken.reason, 3);
    throw new CommandFailed(`${file} holds no event of ${paymentId}; next: payments find`);
  }
  return {
    misfit:
      unproven &&
      `${file} is not as it was exported, so it is not proven what the payment was: ${unproven}; next: payments verify --file ${file}`,
    timeline: async () => ({
      events: timelineOf(events, unopened, broken),
      ...(broken === undefined ? {} : { broken }),
    }),
    state: async (at) => {
      if (first.revision > 0 && isPart)
        throw new CommandFailed(
          `${file} holds the payment from revision ${first.revision} on, and its state is made of every event; next: payments export ${paymentId} --out <file>`,
        );
      const parameters = StateParameters.safeParse(at);
      if (!parameters.success) throw new CommandFailed('--at must be a revision or a time', 2);
      const state = foldProven({ events, broken }, (proven) =>
        stateOf(proven, parameters.data, unopened, broken),
      );
      if (!('none' in state)) return state;
      throw new CommandFailed(state.detail, state.none === 'broken' ? 3 : 1);
    },
  };
};
