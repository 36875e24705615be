/** The README's first pipeline works as it is written. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { packageRoot } from '../../src/api/package-root.ts'
import { lineOf, scratch, start } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

it('creates, starts, follows and stops a pipeline with curl', async () => {
  const readme = readFileSync(join(packageRoot(), 'README.md'), 'utf8')
  const [, block] = /```sh\n(API=[\s\S]*?)```/.exec(readme) ?? []
  const node = start(['up', '--data-dir', `${directory.path}/data`, '--http', '127.0.0.1:0', '--grpc', 'none'])
  try {
    const [, address] = await lineOf(node, /^penstock ready http=(\S+)/)
    const script = block.replace('127.0.0.1:8769', address).replaceAll('body.json', `${directory.path}/body.json`)
    // curl -m ends a stream that goes on with exit code 28.
    const { stdout } = await promisify(execFile)('bash', ['-uc', script], { cwd: packageRoot() })
    expect(stdout).toContain(': ready')
    expect(stdout).toMatch(/data: ?\{"messages":\[.*"message":"running"/)
    expect(stdout).toMatch(/data: ?\{"metricCollections":\[/)
    expect(stdout).toMatch(/\{\}\s*$/)
    expect(stdout).not.toContain('"code"')
  } finally {
    node.kill('SIGTERM')
  }
})
