/** For threads.test.ts, by the environment, which threads share: does not begin, takes its time to load, or does a task that lasts until it is told to end. */
process.env.TEST_THREADS_BEGUN = String(Number(process.env.TEST_THREADS_BEGUN ?? 0) + 1)
if (process.env.TEST_THREADS_DIE !== undefined) {
  throw Object.assign(new Error('EMFILE: this thread does not begin'), { code: 'EMFILE' })
}

while (process.env.TEST_THREADS_LOAD !== undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)

export default async () => {
  process.env.TEST_TASK_BEGUN = '1'
  while (process.env.TEST_TASK_ENDS === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
}
