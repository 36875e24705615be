/** A node of the hub in the process of the test, which goes and comes back. */
import { type Caller, grpcCaller, startReal } from '../hub/callers.ts'
import type { ServerParty } from './server-party.ts'

const flags = { grpc: '127.0.0.1:0' }

export class Member {
  readonly id: string
  /** What it has been named last. */
  name: string
  /** Whether it is on the hub still; undefined: its removal was answered UNKNOWN. */
  isMember: boolean | undefined = true
  readonly #directory: string
  #running: Awaited<ReturnType<typeof startReal>>
  #caller: Caller | undefined

  private constructor(directory: string, name: string, running: Awaited<ReturnType<typeof startReal>>) {
    this.#directory = directory
    this.#running = running
    this.#caller = grpcCaller(running)
    this.id = running.node.id
    this.name = name
  }

  static async start(directory: string, name: string): Promise<Member> {
    const member = new Member(directory, name, await startReal(directory, flags))
    await member.rename(name)
    return member
  }

  /** Undefined: it is down. */
  get caller(): Caller | undefined {
    return this.#caller
  }

  async join(server: ServerParty): Promise<void> {
    const { stream, answer } = await server.caller.converse('authenticationByRequests')
    const joined = this.#caller?.unary('authenticateByRequest', { hubServerAddress: server.address })
    joined?.catch(() => {})
    const { requestId } = await stream.next()
    answer({ requestId, accept: true })
    await joined
    stream.close()
  }

  async rename(name: string): Promise<void> {
    await this.#caller?.unary('setNode', { nodeId: this.id, name, metadata: {} })
    this.name = name
  }

  /** Down if it is up, and up if it is down. */
  async turn(): Promise<void> {
    if (this.#caller === undefined) {
      this.#running = await startReal(this.#directory, flags)
      this.#caller = grpcCaller(this.#running)
    } else await this.close()
  }

  async close(): Promise<void> {
    if (this.#caller === undefined) return
    this.#caller.close()
    this.#caller = undefined
    await this.#running.node.close()
  }
}
