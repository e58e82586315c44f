/**
 * The stand-in as a process of its own, for runs of several processes:
 * `node test/support/eventstoredb-stand-in-main.ts [--port N] [--file events.jsonl] [--marks-each-event]`.
 * Prints its address in one line, and what it was called at each SIGUSR2; PORT works as `--port`
 * does. Ends at SIGTERM or SIGINT.
 */
import { parseArgs } from 'node:util';
import { startStandIn } from './eventstoredb-stand-in.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    file: { type: 'string' },
    'marks-each-event': { type: 'boolean' },
  },
});
const standIn = await startStandIn({
  port: Number(values.port ?? process.env.PORT ?? 0),
  ...(values.file === undefined ? {} : { file: values.file }),
  marksEachEvent: values['marks-each-event'] ?? false,
});
process.stdout.write(`${standIn.url}\n`);
process.on('SIGUSR2', () => process.stdout.write(`${JSON.stringify(standIn.calls)}\n`));
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void standIn.close().then(() => process.exit(0)));
}
