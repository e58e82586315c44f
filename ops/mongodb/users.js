// The users of the read models. MongoDB's image runs this file once, while its volume is empty.
const readModels = db.getSiblingDB('payments');
const addWriters = (role, collections) =>
  readModels.createRole({
    role,
    privileges: collections.map((collection) => ({
      resource: { db: 'payments', collection },
      actions: ['insert', 'update'],
    })),
    roles: [],
  });
// Results of checks, which any process keeps for the others.
addWriters('checks', ['kept']);
// The command API makes keys of personal data, and erases them.
addWriters('personalKeys', ['personal_keys', 'personal_keys_checkpoint']);
const { MONGODB_WRITE_PASSWORD, MONGODB_COMMAND_PASSWORD, MONGODB_READ_PASSWORD } = process.env;
for (const [user, pwd, roles] of [
  ['projector', MONGODB_WRITE_PASSWORD, ['readWrite']],
  ['commands', MONGODB_COMMAND_PASSWORD, ['read', 'checks', 'personalKeys']],
  ['reader', MONGODB_READ_PASSWORD, ['read', 'checks']],
])
  readModels.createUser({ user, pwd, roles });
