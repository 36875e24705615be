/** What the scripts that make packages say of arguments that they do not take. */
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'

test.each([
  [['npm.js', '--nonsense'], "Unknown option '--nonsense'", 'package'],
  [['npm.js', 'all'], "Unexpected argument 'all'", 'package'],
  [['npm.js', '--arch', 'vax'], 'nothing here builds for vax', 'package'],
  [['deb.js', '--arch', 'x64'], "Unknown option '--arch'", 'package:deb'],
])('%j', ([script = '', ...args], problem, name) => {
  const command = [`packaging/${script}`, ...args]
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: packageRoot(), encoding: 'utf8' })
  const lines = stderr.trimEnd().split('\n')
  expect({ status, stdout, lines }).toEqual({
    status: 2,
    stdout: '',
    lines: [expect.stringContaining(problem), expect.stringContaining(`usage: npm run ${name} -- [--out DIRECTORY]`)],
  })
})
