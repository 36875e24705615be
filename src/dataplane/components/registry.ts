/** The one registry of components: key to definition, for those that are available. */
import type { AnyComponent } from '../engine/component.ts'
import { peerWriter } from './endpoints/peer-writer.ts'
import { tun } from './endpoints/tun.ts'
import { udp } from './endpoints/udp.ts'
import { udpLocal } from './endpoints/udp-local.ts'
import { udpRemote } from './endpoints/udp-remote.ts'
import { flowCombiner } from './routing/flow-combiner.ts'
import { splitter } from './routing/splitter.ts'

const definitions: AnyComponent[] = [flowCombiner, peerWriter, splitter, tun, udp, udpLocal, udpRemote]

export const components: ReadonlyMap<string, AnyComponent> = new Map(
  definitions.map((definition) => [definition.key, definition]),
)
