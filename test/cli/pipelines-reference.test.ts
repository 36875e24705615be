/** docs/pipelines.md: every verb stands in it, its examples work as they are typed, and the help of each fits a terminal. */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { packageRoot } from '../../src/package-root.ts'
import { penstock, plainEnvironment, scratch } from './cli.ts'
import { CommandNode } from './running-node.ts'
import '../harness/slow.ts'

const directory = scratch()
afterAll(() => directory.dispose())
const page = readFileSync(join(packageRoot(), 'docs/pipelines.md'), 'utf8')
const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block as string)
const verbs = (await createProgram()).commands
  .find((command) => command.name() === 'pipelines')!
  .commands.map((command) => command.name())

it('has an example of every verb', () => {
  const configurations = readFileSync(join(packageRoot(), 'docs/configurations.md'), 'utf8')
  const examples = [...blocks, configurations].join('\n')
  expect(verbs.filter((verb) => !new RegExp(`penstock pipelines ${verb}\\b`).test(examples))).toEqual([])
})

it('has examples that work as they are typed', async () => {
  cpSync(join(packageRoot(), 'examples'), join(directory.path, 'examples'), { recursive: true })
  const launcher = join(packageRoot(), 'bin/penstock.js')
  const command = join(directory.path, 'penstock')
  writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${launcher}' "$@"\n`, { mode: 0o755 })
  const node = await CommandNode.up(`${directory.path}/data`)
  try {
    const env = { ...plainEnvironment(), PENSTOCK_URL: node.url, PATH: `${directory.path}:${process.env.PATH}` }
    const script = `set -euo pipefail\n${blocks.join('\n')}`
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], { cwd: directory.path, env })
    expect(stdout).toMatch(/unchanged +link .*\ndry run/)
    expect(stdout).toMatch(/unchanged +link .*\nstarted +link /)
    expect(await node.json('pipelines', 'list')).toEqual([])
    writeFileSync(join(directory.path, 'yaml.yaml'), /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '')
    expect((await node.call(['pipelines', 'apply', join(directory.path, 'yaml.yaml')])).stdout).toMatch(
      /^created +link /,
    )
  } finally {
    await node.end()
  }
})

it('shows help of every verb in 80 columns', async () => {
  for (const verb of [...verbs.map((each) => ['pipelines', each]), ['status'], ['pipelines']]) {
    const { code, stdout } = await penstock([...verb, '--help'])
    expect({ verb, code, long: stdout.split('\n').filter((line) => line.length > 80) }).toEqual({
      verb,
      code: 0,
      long: [],
    })
  }
})
