/** Names the tests that passed only when they were tried again. */
import type { Reporter, TestCase } from 'vitest/node'

export class Flaky implements Reporter {
  readonly #tests: string[] = []

  onTestCaseResult(test: TestCase): void {
    if (!test.diagnostic()?.flaky) return
    const [error] = test.result().errors ?? []
    this.#tests.push(`${test.module.relativeModuleId} > ${test.fullName}\n  ${error?.stack ?? error?.message}`)
  }

  onTestRunEnd(): void {
    if (this.#tests.length > 0) console.error(`Passed only when tried again:\n${this.#tests.join('\n')}`)
  }
}
