/**
 * What Piscina loads in each thread: the module that `workerData` names, whose default export does the tasks. A thread that is ended in
 * the midst of `require` of an ECMAScript module takes the process with it (Module::IsGraphAsync, Node.js 20), so it says when it begins
 * and when it is done: `loads[0]` and `loads[1]` count both. `import` would open a hundred files at once.
 */
const { thread, loads } = require('node:worker_threads').workerData as { thread: string; loads: Int32Array }

Atomics.add(loads, 0, 1)
try {
  module.exports = require(thread).default
} finally {
  Atomics.add(loads, 1, 1)
}
