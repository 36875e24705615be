/** What goes from component to component: batches of packets, and signals between them. */
import type { Batch } from './batch.ts'

/** Signals that travel with the flow: FLUSH, encoders emit what is pending; RESET, decoders forget. */
export type Notification = 'FLUSH' | 'RESET'

/** Takes a batch and owns its packets from then on. */
export type Receiver = (batch: Batch) => void
