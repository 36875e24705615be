/** The `flows` of emulation components: independent pairs of input and output under one model. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import type { Notification, Receiver } from '../../engine/flow.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import { Input, List, Output } from '../../engine/schema.ts'
import { applyLoss, type LossModel } from './loss-models.ts'

export const Flows = () =>
  List(
    Type.Object({ input: Input(), output: Output() }),
    'Pairs of input and output; all go through the same model, with one state.',
  )

/** Notifications wait their turn in queues of handles as negative numbers. */
const FLUSH_ENTRY = -1
/** Notifications that wait in one delay or link behind its packets; while there are so many, further ones are left out. */
export const MAX_WAITING_NOTIFICATIONS = 16_384
const RESET_ENTRY = -2

export const entryOf = (notification: Notification): number => (notification === 'FLUSH' ? FLUSH_ENTRY : RESET_ENTRY)

export const notificationOf = (entry: number): Notification => (entry === FLUSH_ENTRY ? 'FLUSH' : 'RESET')

/** Receivers of flows that `model` loses packets of, counted as `lost`. */
export const lossyFlows = (
  flows: readonly { readonly output: Outlet }[],
  model: LossModel,
  lost: Counter,
): { input: Receiver }[] =>
  flows.map(({ output }) => ({
    input(batch: Batch) {
      applyLoss(batch, model, lost)
      output.send(batch)
    },
  }))
