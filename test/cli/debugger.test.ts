/** The debugger of Node.js, by which whoever reaches its port runs code as this process: a signal does not open it. */
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import { lineOf, lossy, scratch, start } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

const UP = ['up', '--http', '127.0.0.1:0', '--grpc', 'none', '--log-level', 'error']
/** A port of its own, so that none that is taken keeps it shut. */
const ANY_PORT = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' }

/** A node; calls it, which it answers once it has seen the signals that it was sent before. */
async function up(name: string, env: Record<string, string>) {
  const child = start([...UP, '--data-dir', `${directory.path}/${name}`], env)
  const errors = text(child.stderr!)
  const [, http] = await lineOf(child, /^penstock ready http=(\S+) /)
  return { child, errors, call: async () => (await fetch(`http://${http}/v1/hub-client/local-node-id`)).status }
}

test('up: SIGUSR1 does nothing', async () => {
  const { child, errors, call } = await up('node', ANY_PORT)
  const gone = once(child, 'exit')
  for (let i = 0; i < 5; i++) {
    child.kill('SIGUSR1')
    expect(await call()).toBe(200)
  }
  child.kill('SIGTERM')
  expect(await gone).toEqual([0, null])
  expect(await errors).toBe('')
})

test('run: SIGUSR1 does nothing', async () => {
  const child = start(['run', directory.file('run.json', lossy), '-d', '1500ms', '--log-level', 'ERROR'], ANY_PORT)
  const errors = text(child.stderr!)
  const gone = once(child, 'exit')
  // Its first rates, a second after it began.
  await lineOf(child, /\S/)
  child.kill('SIGUSR1')
  expect(await gone).toEqual([0, null])
  expect(await errors).not.toMatch(/debugger|inspector/i)
})

test('a debugger that was asked for stays', async () => {
  const { child, errors, call } = await up('debugged', { NODE_OPTIONS: '--inspect=127.0.0.1:0' })
  child.kill('SIGUSR1')
  expect(await call()).toBe(200)
  child.kill('SIGTERM')
  const [, address] = /^Debugger listening on ws:\/\/(\S+)\//.exec(await errors) ?? []
  expect(address).toMatch(/^127\.0\.0\.1:\d+$/)
})
