// The users of the read models. MongoDB's image runs this file once, while its volume is empty.
const readModels = db.getSiblingDB('payments');
readModels.createUser({
  user: 'projector',
  pwd: process.env.MONGODB_WRITE_PASSWORD,
  roles: ['readWrite'],
});
readModels.createUser({ user: 'reader', pwd: process.env.MONGODB_READ_PASSWORD, roles: ['read'] });
