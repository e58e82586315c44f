/** Makes the log append-only by the server's own rule (docs/eventstoredb.md). */
import { jsonEvent } from '@eventstore/db-client';
import { isDenied, lineOf } from './call-outcome.ts';
import { addressOf } from './client.ts';
import { inTime } from './connection.ts';

const CALL_MS_MAX = 10_000;
const ADMINISTRATORS = '$admins';

/** The server's default rights: `$r` read, `$w` write, `$d` delete, `$mr` and `$mw` the metadata. */
const rightsOf = (users: string | string[]) => {
  return { $r: users, $w: users, $mr: users, $d: ADMINISTRATORS, $mw: ADMINISTRATORS };
};
const rightsFor = (user: string) => ({
  $userStreamAcl: rightsOf([user, ADMINISTRATORS]),
  $systemStreamAcl: rightsOf(ADMINISTRATORS),
});

/** Then administrators alone delete and rewrite. Throws as `addressOf`, and Error with one line. */
export const limitUser = async (url: string, user: string): Promise<void> => {
  const address = addressOf(url);
  const client = address.client();
  const { credentials } = address;
  const acl = { readRoles: [user, ADMINISTRATORS] };
  const settings = jsonEvent({ type: 'update-default-acl', data: rightsFor(user) });
  try {
    // By default administrators alone read $all, which the projector follows.
    await inTime(CALL_MS_MAX, client.setStreamMetadata('$all', { acl }, { credentials }));
    await inTime(CALL_MS_MAX, client.appendToStream('$settings', settings, { credentials }));
  } catch (error) {
    const line = isDenied(error)
      ? 'the user of EVENTSTOREDB_URL is no administrator'
      : lineOf(error);
    throw new Error(line.replace('EVENTSTOREDB_URL', 'EVENTSTOREDB_ADMIN_URL'));
  } finally {
    await inTime(CALL_MS_MAX, client.dispose());
  }
};
