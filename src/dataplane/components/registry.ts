/** The one registry of components: key to definition, for those that are available. */
import type { AnyComponent } from '../engine/component.ts'
import { flowCombiner } from './routing/flow-combiner.ts'
import { splitter } from './routing/splitter.ts'

const definitions: AnyComponent[] = [flowCombiner, splitter]

export const components: ReadonlyMap<string, AnyComponent> = new Map(
  definitions.map((definition) => [definition.key, definition]),
)
