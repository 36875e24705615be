import { expect, test } from 'vitest'
import { CARRIER_TRANSITIONS } from './carrier-state.ts'

test('every event in every state', () => {
  const rows = Object.entries(CARRIER_TRANSITIONS).flatMap(([from, on]) =>
    Object.entries(on).map(([event, to]) => `${from} ${event} ${to}`),
  )
  expect(rows).toEqual([
    'USED silent LEFT',
    'USED answered USED',
    'USED reset USED',
    'LEFT silent LEFT',
    'LEFT answered ANSWERED_ONCE',
    'LEFT reset USED',
    'ANSWERED_ONCE silent LEFT',
    'ANSWERED_ONCE answered ANSWERED_TWICE',
    'ANSWERED_ONCE reset USED',
    'ANSWERED_TWICE silent LEFT',
    'ANSWERED_TWICE answered USED',
    'ANSWERED_TWICE reset USED',
  ])
})
