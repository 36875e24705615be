/** A server of a hub as a process, with a path to NATS of its own, and what goes wrong with either. */
import type { Random } from '../../src/dataplane/engine/random.ts'
import { NatsProxy } from '../harness/nats.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Caller } from '../hub/callers.ts'

const STRIKES = ['cut', 'cut', 'cut', 'hold', 'break', 'kill', 'kill', 'stop'] as const
/** Shorter than a lease, about as long, and longer; milliseconds. */
const LENGTHS = [
  [200, 3_000],
  [3_000, 6_000],
  [6_000, 12_000],
] as const

interface ServerPartyOptions {
  readonly name: string
  readonly directory: string
  readonly natsServer: string
  readonly flags: Record<string, string>
  readonly note: (line: string) => void
}

export class ServerParty {
  readonly name: string
  readonly #note: (line: string) => void
  readonly #proxy: NatsProxy
  #process: NodeProcess
  #starts = 1
  #isUp = true

  private constructor({ name, note }: ServerPartyOptions, proxy: NatsProxy, process: NodeProcess) {
    this.name = name
    this.#note = note
    this.#proxy = proxy
    this.#process = process
  }

  static async start(options: ServerPartyOptions): Promise<ServerParty> {
    const { name, directory, natsServer, flags, note } = options
    const proxy = await NatsProxy.before(natsServer)
    const command = { spawned: () => {}, said: (line: string) => note(`${name}: ${line}`) }
    const own = { 'hub-cluster-nats-servers': `nats://${proxy.address}`, grpc: '127.0.0.1:0' }
    try {
      const process = await NodeProcess.start({ directory, command, flags: { ...flags, ...own } })
      return new ServerParty(options, proxy, process)
    } catch (error) {
      proxy.close()
      throw error
    }
  }

  get id(): string {
    return this.#process.id
  }

  /** Where nodes dial it. */
  get address(): string {
    return `http://${this.#process.address}`
  }

  get caller(): Caller {
    return this.#process.caller
  }

  /** Which process it is, counted from 1; undefined: none. */
  get life(): number | undefined {
    return this.#isUp ? this.#starts : undefined
  }

  /** Does something to it, and makes it good again. */
  async strike(random: Random): Promise<void> {
    const kind = STRIKES[random.below(STRIKES.length)] as (typeof STRIKES)[number]
    const [least, most] = LENGTHS[random.below(LENGTHS.length)] as (typeof LENGTHS)[number]
    const milliseconds = random.between(least, most)
    this.#note(`${kind} ${this.name}${kind === 'break' ? '' : ` for ${milliseconds} ms`}`)
    const pause = () => new Promise((resolve) => setTimeout(resolve, milliseconds))
    switch (kind) {
      case 'break':
        this.#proxy.break()
        break
      case 'cut':
        this.#proxy.cut()
        await pause()
        this.#proxy.open()
        // What was held arrives, or is lost.
        if (random.chance(0.5)) this.#proxy.break()
        break
      case 'hold':
        this.#proxy.holdAnswers()
        await pause()
        this.#proxy.break()
        break
      case 'stop':
        this.#process.signal('SIGSTOP')
        await pause()
        this.#process.signal('SIGCONT')
        break
      case 'kill':
        this.#isUp = false
        await this.#process.kill()
        await pause()
        this.#process.caller.close()
        this.#process = await this.#process.again()
        this.#starts++
        this.#isUp = true
    }
    this.#note(`${this.name} is well`)
  }

  close(): void {
    this.#process.caller.close()
    this.#proxy.close()
  }
}
