/**
 * `npm run -s eventstoredb:rights -- USER`: an EventStoreDB user that may append and not delete
 * (docs/eventstoredb.md). EVENTSTOREDB_ADMIN_URL is the address with an administrator.
 */
import { limitUser } from '../shared/event-store/eventstoredb/limited-user.ts';
import { firstLineOf } from '../shared/runtime/error-text.ts';

// Of a certificate for an IP address Node would warn with advice of its own.
process.noDeprecation = true;

const [user = ''] = process.argv.slice(2);
const { EVENTSTOREDB_ADMIN_URL: url = '' } = process.env;

const fail = (line: string): never => {
  process.stderr.write(`payments: ${line}\n`);
  process.exit(1);
};

if (!/^[A-Za-z0-9._-]{1,64}$/.test(user))
  fail('name the user, in letters, digits and ._- : npm run -s eventstoredb:rights -- payments');
if (url === '') fail('EVENTSTOREDB_ADMIN_URL must be the address with an administrator');
try {
  await limitUser(url, user);
} catch (error) {
  fail(`the rights could not be set: ${firstLineOf(error)}; run the command again`);
}
process.stdout.write(
  `${user} may read and append; administrators alone may delete. Next: npx payments doctor\n`,
);
process.exit(0);
