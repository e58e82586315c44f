/**
 * The stand-in as a process of its own: `node test/support/mongodb-stand-in-main.ts`, on PORT or any
 * free port. Prints its address in one line. Ends at SIGTERM or SIGINT.
 */
import { startMongoStandIn } from './mongodb-stand-in.ts';

process.stdout.write(`${await startMongoStandIn(Number(process.env.PORT ?? 0))}\n`);
// The stand-in keeps no process up.
setInterval(() => undefined, 60_000);
