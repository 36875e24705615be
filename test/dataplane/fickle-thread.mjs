/** For threads.test.ts, by the environment, which threads share: does not begin, takes its time to load, or does a task that lasts until it is told to end. */
const number = Number(process.env.TEST_THREADS_BEGUN ?? 0) + 1
process.env.TEST_THREADS_BEGUN = String(number)
if (process.env.TEST_THREADS_DIE !== undefined) {
  throw Object.assign(new Error('EMFILE: this thread does not begin'), { code: 'EMFILE' })
}

// From the one of this number on.
while (number >= Number(process.env.TEST_THREADS_LOAD ?? Number.POSITIVE_INFINITY))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)

export default async () => {
  process.env.TEST_TASK_BEGUN = '1'
  while (process.env.TEST_TASK_ENDS === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
}
