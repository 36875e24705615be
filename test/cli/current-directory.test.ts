/** A current directory that is deleted, under a node that runs and before a command begins. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, penstock, plainEnvironment, scratch } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())
const nodes: ChildProcess[] = []
afterEach(() => {
  for (const node of nodes.splice(0)) node.kill('SIGKILL')
})

const launcher = join(packageRoot(), 'bin/penstock.js')
const example = join(packageRoot(), 'examples/gate.json')
const free = ['--http', '127.0.0.1:0', '--grpc', 'none', '--log-level', 'error']

const here = (name: string): string => {
  const path = join(directory.path, name)
  mkdirSync(path)
  return path
}

describe('up', () => {
  it('starts runs when the directory that it was started in is gone; relative paths lead where they did', async () => {
    const cwd = here('work')
    const env = plainEnvironment()
    const node = spawn(process.execPath, [launcher, 'up', ...free, '--data-dir', '../data'], { cwd, env })
    nodes.push(node)
    const url = `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}`
    expect(existsSync(join(directory.path, 'data/penstock.lmdb'))).toBe(true)
    rmSync(cwd, { recursive: true })
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await penstock(['pipelines', 'create', name, example, '--url', url])
      const { code, stderr } = await penstock(['pipelines', 'start', name, '--url', url])
      expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: '' })
    }
    const gone = once(node, 'exit')
    node.kill('SIGTERM')
    await gone
  })
})

describe('a command in a directory that is deleted', () => {
  const cwd = here('gone')
  const say = (...args: string[]) => {
    mkdirSync(cwd, { recursive: true })
    const script = 'cd "$0" && rmdir "$0" && exec "$@"'
    const command = ['-c', script, cwd, process.execPath, launcher, ...args]
    return spawnSync('bash', command, { encoding: 'utf8', env: plainEnvironment() })
  }

  it.each([
    [['run', example]],
    [['hub', 'key', 'create', 'hub.key']],
    [['up', '--data-dir', 'data']],
    [['simulate', '-d', '1s', '--repeat', '2', example]],
  ])('%j says so', (args) => {
    const { status, stderr } = say(...args)
    expect(status).toBe(1)
    expect(stderr).toMatch(/the current directory has been deleted: change into another\n$/)
  })

  it('does what needs none', () => {
    expect(say('validate', example)).toMatchObject({ status: 0, stderr: '' })
  })
})
