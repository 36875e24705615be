/** Nodes as `penstock up` runs them, each a process with a data directory of its own, and the commands that talk to one. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'vitest'
import { until } from '../harness/waiting.ts'
import { lineOf, penstock, type Result, type RunOptions, start } from './cli.ts'

export class CommandNode {
  readonly id: string
  readonly url: string
  readonly process: ChildProcess

  private constructor(process: ChildProcess, id: string, url: string) {
    this.process = process
    this.id = id
    this.url = url
  }

  /** Runs until `end`; `directory` is where it keeps its state. */
  static async up(directory: string, ...flags: string[]): Promise<CommandNode> {
    const listeners = ['--http', '127.0.0.1:0', '--grpc', 'none', '--log-level', 'error']
    const child = start(['up', '--data-dir', directory, ...listeners, ...flags])
    const [, address, id] = await lineOf(child, /^penstock ready http=(\S+) grpc=none node=(\S+)$/)
    return new CommandNode(child, id as string, `http://${address}`)
  }

  /** Runs a command against this node. */
  call(args: string[], options: RunOptions = {}): Promise<Result> {
    return penstock(args, { ...options, env: { PENSTOCK_URL: this.url, ...options.env } })
  }

  /** The same, as JSON; fails unless the command succeeds. */
  async json<T = Record<string, never>>(...args: string[]): Promise<T> {
    const { code, stdout, stderr } = await this.call([...args, '-o', 'json'])
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
    return JSON.parse(stdout) as T
  }

  /** Has it join the hub of another, which approves. */
  async join(hub: CommandNode): Promise<void> {
    const asked = this.call(['authenticate-by-request', hub.url])
    const requests = `${hub.url}/v1/hub-server/authentication-requests`
    await until(async () => JSON.stringify(await (await fetch(requests)).json()).includes(this.id), 'it asks to join')
    expect(await hub.call(['authentication-requests', 'approve', '--all'])).toMatchObject({ code: 0 })
    expect(await asked).toMatchObject({ code: 0 })
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const gone = once(this.process, 'exit')
    this.process.kill('SIGKILL')
    await gone
  }
}
