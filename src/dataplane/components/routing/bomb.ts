/** bomb: ends its run, in the way that is to be tried. */
import { AssertionError } from 'node:assert'
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import type { Log } from '../../engine/log.ts'
import { gauge } from '../../engine/metrics.ts'
import { Enumeration, Milliseconds } from '../../engine/schema.ts'

const Poison = { NONE: 0, VERIFY_FAIL: 1, ASSERT_FAIL: 2, THROW_EXCEPTION: 3, LOG_FATAL: 4 } as const

/** Does what `poison` says. Throws for all but NONE and LOG_FATAL. */
function explode(poison: keyof typeof Poison, log: Log): void {
  switch (poison) {
    case 'NONE':
      log('INFO', 'went off, and does nothing: poison is NONE')
      return
    case 'VERIFY_FAIL':
      throw new AssertionError({ message: 'verification failed, as poison VERIFY_FAIL asks for', operator: 'fail' })
    case 'ASSERT_FAIL':
      throw new AssertionError({ message: 'assertion failed, as poison ASSERT_FAIL asks for', operator: 'fail' })
    case 'THROW_EXCEPTION':
      throw new Error('thrown, as poison THROW_EXCEPTION asks for')
    case 'LOG_FATAL':
      log('FATAL', 'ends the run, as poison LOG_FATAL asks for')
  }
}

export const bomb = defineComponent({
  key: 'bomb',
  family: 'routing',
  summary: 'Fails its run on purpose, to try what the restart policy and those who watch make of it.',
  details:
    'VERIFY_FAIL and ASSERT_FAIL fail an assertion, THROW_EXCEPTION throws, LOG_FATAL writes a FATAL line into the run log: each ends this run ' +
    'as FAILED, and nothing else on the node. NONE writes a line and goes on. Until it has gone off a run is not complete, though all of its ' +
    'sources are done. It goes off once: delay and poison can be changed until then, and a new delay that is not over arms it again.',
  config: Type.Object({
    delay: Milliseconds('Time from the start of the run until it goes off.', { maximum: 4_294_967_295 }),
    poison: Enumeration('What it does then.', 'Poison', Poison),
  }),
  metrics: { exploded: gauge('1 once it has gone off.') },
  live: ['delay', 'poison'],
  create(config, { clock, timer, metrics, log }) {
    let { delay, poison } = config
    let start = -1
    const fuse = timer(() => {
      if (start < 0) start = clock.now
      const due = start + delay * NS_PER_MS
      if (due > clock.now) {
        fuse.at(due)
        return
      }
      metrics.exploded.set(1)
      explode(poison, log)
    })
    fuse.at(clock.now)
    return {
      active: () => fuse.armed,
      reconfigure(next) {
        delay = next.delay
        poison = next.poison
        if (start < 0) return
        const due = start + delay * NS_PER_MS
        if (!fuse.armed && due <= clock.now) return
        metrics.exploded.set(0)
        fuse.at(due)
      },
      stop: () => fuse.cancel(),
    }
  },
})
