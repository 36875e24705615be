import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Timers } from './timers.ts'

describe('timers', () => {
  it('fire in due order, equal times in arming order, whatever was cancelled or moved', () => {
    const step = fc.record({ timer: fc.nat(19), due: fc.nat(50), cancel: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const timers = new Timers()
        const fired: number[] = []
        const expected = new Map<number, { due: number; order: number }>()
        const all = Array.from({ length: 20 }, (_, i) => timers.create(() => fired.push(i)))
        steps.forEach(({ timer, due, cancel }, order) => {
          if (cancel) {
            all[timer].cancel()
            expected.delete(timer)
          } else {
            all[timer].at(due)
            expected.set(timer, { due, order })
          }
        })
        timers.fireDue(1000)
        const order = [...expected].sort((a, b) => a[1].due - b[1].due || a[1].order - b[1].order).map(([i]) => i)
        expect(fired).toEqual(order)
        expect(timers.next).toBe(Number.POSITIVE_INFINITY)
      }),
    )
  })

  it('fires only what is due, and leaves what a timer arms for now to the next breath', () => {
    const timers = new Timers()
    let count = 0
    const timer = timers.create(() => {
      count++
      timer.at(10)
    })
    timer.at(10)
    timers.fireDue(9)
    expect(count).toBe(0)
    timers.fireDue(10)
    expect(count).toBe(1)
    timers.fireDue(10)
    expect(count).toBe(2)
  })
})
