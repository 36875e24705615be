import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

const limits = { testTimeout: 60_000, hookTimeout: 60_000, pool: 'forks' } as const

const BROWSER = 'test/browser/**/*.test.ts'

const projects: TestProjectInlineConfiguration[] = [
  {
    test: {
      ...limits,
      name: 'node',
      include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'web/src/**/*.test.ts'],
      exclude: [BROWSER],
    },
  },
  { test: { ...limits, name: 'browser', include: [BROWSER], globalSetup: 'test/browser/server.ts' } },
]

export default defineConfig({
  test: {
    projects,
    globalSetup: 'test/harness/temporary.ts',
    maxWorkers: 2,
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.vitest/results.json' }]] : ['default'],
  },
})
