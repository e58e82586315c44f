/** Jest's transformer: strips types exactly as Node does, and nothing else. */
const { createHash } = require('node:crypto');
const { stripTypeScriptTypes } = require('node:module');

module.exports = {
  process: (source) => ({ code: stripTypeScriptTypes(source, { mode: 'strip' }) }),
  getCacheKey: (source, file, options) =>
    createHash('sha256')
      .update(source)
      .update(file)
      .update(process.version)
      .update(options.configString)
      .digest('hex'),
};
