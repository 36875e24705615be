/** Whether a carrier is used: a table of transitions, since the thread of a run has no actors. */

/** `USED`; `LEFT` because it was silent, and then on its way back: one or two probes answered since. */
export type CarrierState = 'USED' | 'LEFT' | 'ANSWERED_ONCE' | 'ANSWERED_TWICE'

/**
 * `silent`: what was sent on it is unreported for too long. `answered`: a probe sent while it was not used has its answer.
 * `reset`: the other end is new, and nothing is known of it.
 */
export type CarrierEvent = 'silent' | 'answered' | 'reset'

export const CARRIER_TRANSITIONS: Readonly<Record<CarrierState, Readonly<Record<CarrierEvent, CarrierState>>>> = {
  USED: { silent: 'LEFT', answered: 'USED', reset: 'USED' },
  LEFT: { silent: 'LEFT', answered: 'ANSWERED_ONCE', reset: 'USED' },
  ANSWERED_ONCE: { silent: 'LEFT', answered: 'ANSWERED_TWICE', reset: 'USED' },
  ANSWERED_TWICE: { silent: 'LEFT', answered: 'USED', reset: 'USED' },
}
