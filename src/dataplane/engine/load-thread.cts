/**
 * What Piscina loads in each thread: the module that `workerData` names, whose default export does the tasks. It is imported, not required
 * as Piscina would: a thread that is ended in the midst of `require` of an ECMAScript module takes the process with it
 * (Module::IsGraphAsync, Node.js 20).
 */
const { thread } = require('node:worker_threads').workerData as { thread: string }

module.exports = import(thread).then((loaded: { default: unknown }) => loaded.default)
