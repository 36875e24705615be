/** A hub's members moved from one data directory to another and back, as an operator does it: its node comes back by itself. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadIdentity } from '../../src/link/identity.ts'
import { Store } from '../../src/store/store.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress } from '../hub/callers.ts'
import { lineOf, lossy, penstock, scratch, start } from './cli.ts'
import '../harness/slow.ts'

const directory = scratch()
const path = (name: string) => join(directory.path, name)
const running = new Set<ChildProcess>()
afterAll(() => {
  for (const node of running) node.kill('SIGKILL')
  directory.dispose()
})

async function up(name: string, http: string, ...flags: string[]) {
  const own = ['--data-dir', path(name), '--node-name', name, '--http', http, '--grpc', 'none', '--log-level', 'error']
  const process = start(['up', ...own, ...flags])
  running.add(process)
  const [, address, id] = await lineOf(process, /^penstock ready http=(\S+) grpc=none node=(\S+)$/)
  const down = async () => {
    const gone = once(process, 'exit')
    process.kill('SIGTERM')
    await gone
    running.delete(process)
  }
  return { id: id as string, url: `http://${address}`, down }
}
type Node = Awaited<ReturnType<typeof up>>

async function output(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await penstock(args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}
const json = async (...args: string[]) => JSON.parse(await output(...args, '--json'))

async function failure(...args: string[]): Promise<string> {
  const { code, stderr } = await penstock(args)
  expect(code).toBe(1)
  return stderr
}

/** What is on the disk of a hub whose node is down. */
async function stored(name: string) {
  const store = new Store(path(name))
  const found = { members: store.nodes.all(), requestIds: store.requestIds.unused }
  await store.close()
  return found
}

const key = ['--hub-key-file', path('hub.key')]
let address: string
let edge: Node
let hubId: string
let pipeline: string

beforeAll(async () => {
  address = await freeAddress()
  const first = await up('first', address, '--hub')
  edge = await up('edge', '127.0.0.1:0', '--node-metadata', '{region: eu, rack: 4}')
  const joined = penstock(['authenticate-by-request', first.url, '--url', edge.url])
  await until(async () => (await output('authentication-requests', 'list', '--url', first.url)).includes('edge'))
  await output('authentication-requests', 'approve', '--all', '--url', first.url)
  expect((await joined).code).toBe(0)
  pipeline = (await json('pipelines', 'create', 'kept', directory.file('lossy.json', lossy), '--url', first.url)).id
  expect(await failure('hub', 'export', path('busy.jsonl'), '--data-dir', path('first'))).toContain('is in use')
  await first.down()
  hubId = first.id
}, 60_000)

describe('a hub', () => {
  it('goes to another directory with the key that its nodes know, and they come back', async () => {
    const adopted = await json('hub', 'key', 'adopt', path('hub.key'), '--data-dir', path('first'))
    const keyless = await failure('hub', 'export', path('keyless.jsonl'), '--data-dir', path('first'))
    expect(keyless).toContain(`its members know the hub by the key ${hubId}`)
    expect(keyless).toContain('(--hub-key-file)')
    expect(existsSync(path('keyless.jsonl'))).toBe(false)
    const exported = await json('hub', 'export', path('first.jsonl'), '--data-dir', path('first'), ...key)
    expect(exported).toEqual({ file: path('first.jsonl'), hubId, members: 1 })
    expect(statSync(path('first.jsonl')).mode & 0o777).toBe(0o600)

    const imported = await json('hub', 'import', path('first.jsonl'), '--data-dir', path('second'), ...key)
    expect(imported).toEqual({
      file: path('first.jsonl'),
      hubId,
      members: 1,
      pipelines: [{ id: pipeline, name: 'kept', node: adopted.nodeId }],
    })
    const second = await up('second', address, '--hub', ...key)
    const state = async () => (await json('status', '--url', edge.url)).state
    await until(async () => (await state()) === 'CONNECTED', 'the node has come back by itself')
    const [node] = (await json('nodes', 'list', '--url', second.url)).filter(({ id }: Node) => id === edge.id)
    expect(node).toMatchObject({ name: 'edge', metadata: { items: { region: { stringValue: 'eu' } } } })
    await second.down()
    expect((await stored('second')).requestIds).toBeGreaterThanOrEqual((await stored('first')).requestIds)
  })

  it('goes back the same way, and nothing of its members has changed', async () => {
    await output('hub', 'export', path('second.jsonl'), '--data-dir', path('second'), ...key)
    mkdirSync(path('third'))
    await output('hub', 'import', path('second.jsonl'), '--data-dir', path('third'), ...key)
    await output('hub', 'export', path('third.jsonl'), '--data-dir', path('third'), ...key)
    const lines = (name: string) => readFileSync(path(name), 'utf8').split('\n').slice(1)
    expect(lines('third.jsonl')).toEqual(lines('second.jsonl'))
    expect((await stored('third')).members).toEqual((await stored('second')).members)
  })
})

describe('nothing is taken', () => {
  const importing = (file: string, name: string, ...more: string[]) =>
    failure('hub', 'import', file, '--data-dir', path(name), ...more)

  it('from a file with one fault', async () => {
    loadIdentity(path('fresh'))
    const text = readFileSync(path('first.jsonl'), 'utf8')
    const wrong = directory.file('wrong.jsonl', text.replace('"members":1', '"members":2'))
    expect(await importing(wrong, 'fresh', ...key)).toContain('wrong.jsonl is not taken:\n  1 members, where')
    expect((await stored('fresh')).members).toEqual([])
  })

  it('of another hub', async () => {
    expect(await importing(path('first.jsonl'), 'fresh')).toContain('give the key of that hub (--hub-key-file)')
    expect((await stored('fresh')).members).toEqual([])
  })

  it('by a hub that has members', async () => {
    expect(await importing(path('first.jsonl'), 'third', ...key)).toContain('this hub has 1 members')
  })

  it('where there is no node', async () => {
    expect(await importing(path('first.jsonl'), 'none')).toContain('there is no node in')
    const other = ['--hub-key-file', path('other.key')]
    await output('hub', 'key', 'create', path('other.key'))
    expect(await importing(path('first.jsonl'), 'none', ...other)).toContain('give the key of that hub')
    expect(await failure('hub', 'export', path('none.jsonl'), '--data-dir', path('none'))).toContain('is no node in')
    expect([existsSync(path('none')), existsSync(path('none.jsonl'))]).toEqual([false, false])
  })

  it('where there are files, and not that of a node', async () => {
    mkdirSync(path('files'))
    const file = directory.file('files/notes', '')
    expect(await importing(path('first.jsonl'), 'files', ...key)).toContain('there is no node in')
    expect(readdirSync(path('files'))).toEqual([basename(file)])
  })

  it('from a directory', async () => {
    expect(await importing(directory.path, 'first', ...key)).toContain(`${directory.path} is a directory, not a file`)
  })

  it('and no file is written over', async () => {
    const text = readFileSync(path('first.jsonl'), 'utf8')
    const stderr = await failure('hub', 'export', path('first.jsonl'), '--data-dir', path('first'), ...key)
    expect(stderr).toContain(`cannot write ${path('first.jsonl')}: it is there already`)
    expect(stderr).not.toContain('EEXIST')
    expect(readFileSync(path('first.jsonl'), 'utf8')).toBe(text)
  })
})
