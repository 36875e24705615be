/** For threads.test.ts, by the environment, which threads share: does not begin, or does a task that lasts until it is told to end. */
if (process.env.TEST_THREADS_DIE !== undefined) {
  throw Object.assign(new Error('EMFILE: this thread does not begin'), { code: 'EMFILE' })
}

export default async () => {
  process.env.TEST_TASK_BEGUN = '1'
  while (process.env.TEST_TASK_ENDS === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
}
