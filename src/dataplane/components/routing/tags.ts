/** The tagged connection points of tag_mux and tag_demux. */
import type { Fault } from '../../engine/component.ts'
import { Int32 } from '../../engine/schema.ts'

export const Tag = () => Int32('Tag of its packets, unlike all others here.')

/** A fault for each tag that an earlier entry of the list has. */
export function tagFaults(list: 'inputs' | 'outputs', entries: readonly { tag: number }[]): Fault[] {
  const first = new Map<number, number>()
  return entries.flatMap(({ tag }, i) => {
    const other = first.get(tag)
    if (other === undefined) first.set(tag, i)
    if (other === undefined) return []
    const message = `${tag} is the tag of /${list}/${other} too; give each a tag of its own`
    return [{ pointer: `/${list}/${i}/tag`, message }]
  })
}
