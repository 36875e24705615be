import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TimerQueue } from './timers.ts'

describe('timers', () => {
  it('fire in due order, equal times in arming order, whatever was cancelled or moved', () => {
    const step = fc.record({ timer: fc.nat(19), due: fc.nat(50), cancel: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const timers = new TimerQueue()
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
    const timers = new TimerQueue()
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

  it('a timer that asks for the past again holds no other up: both fire in every round, in order', () => {
    const timers = new TimerQueue()
    const fired: string[] = []
    const late = timers.create(() => {
      fired.push('late')
      late.at(0)
    })
    const other = timers.create(() => fired.push('other'))
    const third = timers.create(() => fired.push('third'))
    late.at(0)
    for (const now of [10, 20, 30]) {
      third.at(now)
      other.at(now - 1)
      timers.fireDue(now)
      expect(fired.splice(0)).toEqual(['late', 'other', 'third'])
      expect(late.armed).toBe(true)
      expect(timers.next).toBe(0)
    }
  })

  it('what is armed during a round can be moved and cancelled in it, and keeps its order for the next', () => {
    const step = fc.record({
      by: fc.nat(9),
      timer: fc.nat(9),
      due: fc.nat(20),
      cancel: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const timers = new TimerQueue()
        const expected = new Map<number, { due: number; order: number }>()
        const fired: number[] = []
        let order = 0
        let acting = true
        const all = Array.from({ length: 10 }, (_, i) =>
          timers.create(() => {
            fired.push(i)
            expected.delete(i)
            if (!acting) return
            for (const { by, timer, due, cancel } of steps) {
              if (by !== i) continue
              if (cancel) {
                all[timer].cancel()
                expected.delete(timer)
              } else {
                all[timer].at(due)
                expected.set(timer, { due, order: order++ })
              }
              expect(all[timer].armed).toBe(!cancel)
            }
          }),
        )
        for (const [i, timer] of all.entries()) {
          timer.at(i)
          expected.set(i, { due: i, order: order++ })
        }
        timers.fireDue(10)
        expect(new Set(fired).size).toBe(fired.length)
        acting = false
        fired.length = 0
        const left = [...expected].sort((a, b) => a[1].due - b[1].due || a[1].order - b[1].order).map(([i]) => i)
        timers.fireDue(1000)
        expect(fired).toEqual(left)
        expect(timers.next).toBe(Number.POSITIVE_INFINITY)
      }),
    )
  })
})
