/** A change of live fields, handed to the components of a graph: by all of them, or by none. */
import { isDeepStrictEqual } from 'node:util'
import type { ComponentConfig } from './config.ts'

type Components = Readonly<Record<string, ComponentConfig>>

/** Gives a component, by its name, its configuration; throws what the component throws. */
type Hand = (name: string, config: ComponentConfig['config']) => void

/**
 * Hands each component of `next` whose configuration differs from that in `old` what it has there, once all of them have passed `verify`: what
 * some have begun by it, such as the end of a source, cannot be had back. When one throws nevertheless, it and those before it
 * are handed what they had, the last one first, and its error is thrown; what is thrown in going back is told to `stuck`: nobody knows
 * then what the components have.
 */
export function takeOver(
  old: Components,
  next: Components,
  verify: Hand,
  hand: Hand,
  stuck: (error: unknown) => void,
): void {
  const changed = Object.entries(next).filter(([name, { config }]) => !isDeepStrictEqual(old[name]?.config, config))
  for (const [name, { config }] of changed) verify(name, config)
  const handed: string[] = []
  try {
    for (const [name, { config }] of changed) {
      handed.push(name)
      hand(name, config)
    }
  } catch (error) {
    for (const name of handed.reverse()) {
      try {
        hand(name, old[name]?.config ?? {})
      } catch (second) {
        stuck(second)
      }
    }
    throw error
  }
}
