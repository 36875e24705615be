/** The connections of a TCP listener by the address of their other end, which is how packets name theirs. */
import type { ConnectionIo } from '../../engine/io.ts'
import type { Packets } from '../../engine/packets.ts'
import { ORDINAL_BYTE, REMOTE_BYTES } from '../../native/native.ts'
import type { Connection, Peers } from './connection.ts'

/** Connections that are over and still known, so that what is meant for them goes to no other. */
const MAX_FORMER = 1024
/** The highest ordinal of a connection among those with its address: a byte of the records. */
const MAX_ORDINAL = 255

/** A connection, or where one was, in the chain of those with its hash. */
interface Entry {
  readonly record: Int32Array
  connection: Connection | null
  next: Entry | null
}

export class TcpPeers implements Peers {
  private readonly packets: Packets
  private readonly foreign: boolean
  private readonly chains = new Map<number, Entry>()
  /** In the order they came; the last is the newest. */
  private readonly connections: Connection[] = []
  private readonly former: Entry[] = []
  private readonly record = new Int32Array(REMOTE_BYTES / 4)

  /** `foreign`: packets may carry the address of another socket's peer, which says nothing of whom they are for here. */
  constructor(packets: Packets, foreign: boolean) {
    this.packets = packets
    this.foreign = foreign
  }

  /** Somebody may come from one port to several addresses of this machine: the ordinals tell such connections apart. */
  add(connection: Connection): boolean {
    const record = (connection.io as ConnectionIo).record.slice()
    let known = this.find(record)
    while (known?.connection && connection.ordinal < MAX_ORDINAL) {
      connection.ordinal++
      new Uint8Array(record.buffer)[ORDINAL_BYTE] = connection.ordinal
      known = this.find(record)
    }
    if (known?.connection) return false
    if (known) {
      known.connection = connection
      const at = this.former.indexOf(known)
      if (at >= 0) this.former.splice(at, 1)
    } else {
      const hash = hashOf(record)
      this.chains.set(hash, { record, connection, next: this.chains.get(hash) ?? null })
    }
    this.connections.push(connection)
    return true
  }

  remove(connection: Connection): void {
    const at = this.connections.indexOf(connection)
    if (at < 0) return
    this.connections.splice(at, 1)
    for (const first of this.chains.values()) {
      for (let entry: Entry | null = first; entry; entry = entry.next) {
        if (entry.connection !== connection) continue
        entry.connection = null
        this.former.push(entry)
      }
    }
    if (this.former.length > MAX_FORMER) this.forget(this.former.shift() as Entry)
  }

  private forget(entry: Entry): void {
    const hash = hashOf(entry.record)
    const kept: Entry[] = []
    for (let at: Entry | null = this.chains.get(hash) ?? null; at; at = at.next) if (at !== entry) kept.push(at)
    this.chains.delete(hash)
    for (const one of kept) {
      one.next = this.chains.get(hash) ?? null
      this.chains.set(hash, one)
    }
  }

  of(packet: number): Connection | null {
    const { packets, record, connections } = this
    if (packets.remote[packet * REMOTE_BYTES] !== 0) {
      packets.readRemote(packet, record)
      const known = this.find(record)
      if (known) return known.connection
      if (!this.foreign) return null
    }
    return connections.length === 0 ? null : (connections[connections.length - 1] as Connection)
  }

  private find(record: Int32Array): Entry | null {
    let entry = this.chains.get(hashOf(record)) ?? null
    while (entry && !isSame(entry.record, record)) entry = entry.next
    return entry
  }
}

/** 30 bits, a number that needs no memory of its own. */
function hashOf(record: Int32Array): number {
  let hash = 0
  for (let i = 0; i < 6; i++) hash = Math.imul(hash ^ record[i], 0x9e3779b1) ^ (hash >>> 15)
  return (hash ^ (hash >>> 16)) & 0x3fffffff
}

/** Family, ordinal, port, scope and address; what follows has no meaning. */
function isSame(left: Int32Array, right: Int32Array): boolean {
  for (let i = 0; i < 6; i++) if (left[i] !== right[i]) return false
  return true
}
