// The users of the read models. MongoDB's image runs this file once, while its volume is empty.
const readModels = db.getSiblingDB('payments');
readModels.createUser({
  user: 'projector',
  pwd: process.env.MONGODB_WRITE_PASSWORD,
  roles: ['readWrite'],
});
// The command API makes keys of personal data, and erases them.
readModels.createRole({
  role: 'personalKeys',
  privileges: ['personal_keys', 'personal_keys_checkpoint'].map((collection) => ({
    resource: { db: 'payments', collection },
    actions: ['insert', 'update'],
  })),
  roles: [],
});
readModels.createUser({
  user: 'reader',
  pwd: process.env.MONGODB_READ_PASSWORD,
  roles: ['read', 'personalKeys'],
});
