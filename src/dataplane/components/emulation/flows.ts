/** The `flows` of emulation components: independent pairs of input and output under one model. */
import { Type } from '@sinclair/typebox'
import type { Notification } from '../../engine/component.ts'
import { Input, List, Output } from '../../engine/schema.ts'

export const Flows = () =>
  List(
    Type.Object({ input: Input(), output: Output() }),
    'Pairs of input and output; all go through the same model, with one state.',
  )

/** Notifications wait their turn in queues of handles as negative numbers. */
export const FLUSH_ENTRY = -1
export const RESET_ENTRY = -2

export const entryOf = (notification: Notification): number => (notification === 'FLUSH' ? FLUSH_ENTRY : RESET_ENTRY)

export const notificationOf = (entry: number): Notification => (entry === FLUSH_ENTRY ? 'FLUSH' : 'RESET')
