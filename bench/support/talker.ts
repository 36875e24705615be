/** A component that logs, beside the product's own. */
import { Type } from '@sinclair/typebox'
import { components } from '../../src/dataplane/components/registry.ts'
import { defineComponent } from '../../src/dataplane/engine/component.ts'

const NS_PER_MS = 1_000_000

/** Says `lines` lines every millisecond. */
const talker = defineComponent({
  key: 'bench_talker',
  family: 'trackers',
  summary: 'Talks.',
  config: Type.Object({ lines: Type.Integer({ minimum: 0, maximum: 1_000, proto: 'u32' }) }),
  metrics: {},
  create({ lines }, { clock, timer, log }) {
    let said = 0
    const tick = timer(() => {
      for (let line = 0; line < lines; line++)
        log('INFO', 'a line of a component that has much to say', { line: said++ })
      tick.at(clock.now + NS_PER_MS)
    })
    tick.at(clock.now)
    return {}
  },
})

export const talkative = new Map([...components, [talker.key, talker as never]])
