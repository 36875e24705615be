/** Simulated networks as one run sees them: its ports, and the members in other runs that their packets are copied to. */
import { native } from '../native/native.ts'
import type { Batch } from './batch.ts'
import { closeRing, createRing, NetworkRing } from './network-ring.ts'
import type { Packets } from './packets.ts'

/** Who takes packets from a network: one component of one run. Can be handed to other threads. */
export interface NetworkMember {
  /** Number of its run, over 0. */
  run: number
  /** Event that wakes the run, -1 for one that looks by itself. */
  event: number
  network: string
  /** The component's name in its configuration. */
  name: string
  ring: SharedArrayBuffer
}

/** Which members have come, and the runs whose members have gone. */
export interface NetworkChange {
  joined: NetworkMember[]
  left: number[]
}

export interface NetworkOptions {
  network: string
  /** The component's name. */
  name: string
  /** Names of the components that packets are copied to; none: all others. */
  receivers: readonly string[]
  /** Longest packet taken in, bytes. */
  mtu: number
  /** Whether packets are taken in at all. */
  hears: boolean
}

interface Target {
  member: NetworkMember
  ring: NetworkRing
}

function wake(event: number): void {
  if (event < 0) return
  try {
    native.eventSignal(event)
  } catch {
    // Its run has ended this moment.
  }
}

/** A component on a network. Made by `RunNetworks.open`. */
export class NetworkPort {
  readonly network: string
  readonly name: string
  /** What it takes packets from; null for one that only sends. */
  readonly member: NetworkMember | null
  private readonly run: RunNetworks
  private readonly ring: NetworkRing | null
  private receivers: readonly string[]
  private others: readonly Target[] = []
  private targets: readonly Target[] = []
  /** Members that packets are copied to; once it is closed, how many were. */
  reached = 0

  constructor(run: RunNetworks, { network, name, receivers, mtu, hears }: NetworkOptions) {
    this.run = run
    this.network = network
    this.name = name
    this.receivers = receivers
    this.member = hears ? { run: run.number, event: run.event, network, name, ring: createRing(mtu) } : null
    this.ring = this.member && new NetworkRing(this.member.ring)
  }

  /** Packets that found as many waiting here as there may be, since this was last asked for. */
  takeMissed(): number {
    return this.ring?.takeFull() ?? 0
  }

  /** Packets that were too long for this port, since this was last asked for. */
  takeOversize(): number {
    return this.ring?.takeOversize() ?? 0
  }

  /** Packets go to components of these names from now on; none: to all others. */
  sendTo(receivers: readonly string[]): void {
    this.receivers = receivers
    this.aim()
  }

  /** The members of the network, this one among them, have changed. */
  see(members: readonly Target[]): void {
    this.others = members.filter(({ member }) => member.run !== this.run.number || member.name !== this.name)
    this.aim()
  }

  private aim(): void {
    const { receivers, others } = this
    this.targets = receivers.length === 0 ? others : others.filter(({ member }) => receivers.includes(member.name))
    this.reached = this.targets.length
  }

  /**
   * Copies a batch's packets to the members that are meant, releases them and empties the batch. Returns how many copies members
   * did not take because `RING_PACKETS` packets waited there.
   */
  send(batch: Batch): number {
    const { targets } = this
    let full = 0
    const { number, packets } = this.run
    for (let i = 0; i < targets.length; i++) {
      const { ring, member } = targets[i]
      full += ring.put(number, packets, batch)
      if (ring.claimWake()) wake(member.event)
    }
    packets.releaseAll(batch)
    return full
  }

  /** Whether packets wait here. If not, the next one wakes the run. */
  get pending(): boolean {
    return this.ring?.pending ?? false
  }

  /** Adds what waits to `batch`, with its arrival time and no other annotation; returns how many were lost for want of a packet slot. */
  receive(batch: Batch): number {
    const { ring, run } = this
    return ring ? ring.take(run.packets, batch, run.time()) : 0
  }

  /** Nothing is copied to this port any more. */
  close(): void {
    if (this.member) closeRing(this.member.ring)
    this.targets = []
    this.others = []
  }
}

/** A run's number in the registry, what wakes it, and who was there when it began. */
export interface NetworkPlace {
  /** Over 0. */
  run: number
  /** Event that wakes the run, -1 when it looks by itself. */
  event: number
  present: readonly NetworkMember[]
}

/** The ports of one run, kept up to date about who else is there. */
export class RunNetworks {
  readonly number: number
  readonly event: number
  /** Takes the time, ns. */
  readonly time: () => number
  /** Set once they exist, before any port is opened. */
  packets!: Packets
  readonly ports: NetworkPort[] = []
  private members: Target[]

  constructor({ run, event, present }: NetworkPlace, time: () => number) {
    this.number = run
    this.event = event
    this.time = time
    this.members = present.map((member) => ({ member, ring: new NetworkRing(member.ring) }))
  }

  /** Names of the networks that this run has ports on. */
  get names(): string[] {
    return [...new Set(this.ports.map(({ network }) => network))]
  }

  /** Those of this run that take packets. */
  get own(): NetworkMember[] {
    return this.ports.flatMap(({ member }) => member ?? [])
  }

  /** A port; the run's other ports on the network reach it at once. */
  open(options: NetworkOptions): NetworkPort {
    const port = new NetworkPort(this, options)
    this.ports.push(port)
    this.change({ joined: port.member ? [port.member] : [], left: [] })
    return port
  }

  /** Members of other runs have come or gone. */
  change({ joined, left }: NetworkChange): void {
    this.members = this.members.filter(({ member }) => !left.includes(member.run))
    for (const member of joined) this.members.push({ member, ring: new NetworkRing(member.ring) })
    for (const port of this.ports) port.see(this.members.filter(({ member }) => member.network === port.network))
  }
}
