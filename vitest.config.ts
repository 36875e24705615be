import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { Flaky } from './test/harness/flaky.ts'

const isContinuous = process.env.CI !== undefined
/** A busy machine may hold a process for as long as another one waits; Flaky tells which tests were tried again. */
const retry = isContinuous ? 1 : 0
const limits = { testTimeout: 60_000, hookTimeout: 60_000, pool: 'forks', retry } as const
const WORKERS = 2

/** What tests in test/ import of src and bench is what is built, as in all that they start: Node.js loads it itself, for less than Vite makes it anew in each worker. */
const built = {
  resolve: {
    alias: [{ find: /^(?:\.\.\/)+(src|bench)\/(.+)\.ts$/, replacement: `${import.meta.dirname}/dist/$1/$2.js` }],
  },
  test: { server: { deps: { external: [/\/dist\/(src|bench)\//] } } },
}

const UNITS = ['src/**/*.test.ts', 'web/src/**/*.test.ts']
const BROWSER = 'test/browser/**/*.test.ts'
/** Only of the long rounds, by test/storm/storm.mjs: one takes a minute and a half. */
const LONG_ONLY = process.env.PENSTOCK_STORM_LONG === undefined ? ['test/cluster-partitions/**'] : []
/** They wait for leases, elections and time limits of other processes for most of their time: they begin early, the longest before the others. */
const LONG = [
  'test/cluster/engine-away.test.ts',
  'test/cluster/requests-over.test.ts',
  'test/cli/demo-cluster.test.ts',
  'test/cluster/moving.test.ts',
  'test/cluster/links.test.ts',
  'test/cluster/killed.test.ts',
  'test/cluster/stalled-engine.test.ts',
  'test/api/pipelines-states.test.ts',
  'test/api/lifecycle.test.ts',
  'test/api/http-faults.test.ts',
  'test/cli/not-a-node.test.ts',
  'test/hub/servers.test.ts',
]

const projects: TestProjectInlineConfiguration[] = [
  {
    ...built,
    test: {
      ...limits,
      ...built.test,
      name: 'node',
      include: ['test/**/*.test.ts'],
      exclude: [BROWSER, ...LONG_ONLY],
    },
  },
  {
    ...built,
    test: { ...limits, ...built.test, name: 'browser', include: [BROWSER], globalSetup: 'test/browser/server.ts' },
  },
  // Hundreds of short files: what they import is loaded once in each worker.
  { test: { ...limits, name: 'unit', include: UNITS, isolate: false, setupFiles: 'test/harness/reserved.ts' } },
]

/** Short files last, so that no worker is left with a long one at the end; one in `WORKERS` of the first ones waits, and the others work meanwhile. */
class ShortLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isUnit = ({ project }: TestSpecification) => project.name === 'unit'
    const place = ({ moduleId }: TestSpecification) => LONG.findIndex((path) => moduleId.endsWith(path))
    const long = sorted.filter((file) => place(file) >= 0).sort((a, b) => place(a) - place(b))
    const others = sorted.filter((file) => place(file) < 0)
    const working = others.filter((file) => !isUnit(file))
    const mixed = long.flatMap((file) => [file, ...working.splice(0, WORKERS - 1)])
    return [...mixed, ...working, ...others.filter(isUnit)]
  }
}

export default defineConfig({
  test: {
    projects,
    globalSetup: 'test/harness/temporary.ts',
    maxWorkers: WORKERS,
    sequence: { sequencer: ShortLast },
    reporters: isContinuous ? ['default', ['json', { outputFile: '.vitest/results.json' }], new Flaky()] : ['default'],
  },
})
