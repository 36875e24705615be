/** The lines that the node's log has of what its services tell: normal life at INFO, failures at WARN and ERROR. */
import { ToldLately } from '../contract/told-lately.ts'
import { NoThread } from '../dataplane/engine/threads.ts'
import type { FactCaller, HubFact, LinkEnd, MembershipFact, ServerFact } from '../hub/facts.ts'
import { fingerprintText } from '../link/certificate.ts'
import type { PipelineFact } from '../services/pipeline-facts.ts'
import { messageOf } from '../text/error-message.ts'

/** What of a logger is needed. */
export interface FactLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

type FactLevel = keyof FactLog

export function logPipeline(log: FactLog, fact: PipelineFact): void {
  const about = { pipeline: fact.pipelineId, name: fact.name, run: fact.runId }
  switch (fact.kind) {
    case 'started':
      log.info({ ...about, ...given({ cpu: fact.cpu, attempt: fact.attempt }) }, 'pipeline started')
      break
    case 'ended': {
      const fields = { ...about, outcome: fact.outcome, ...given({ error: fact.error }) }
      if (fact.outcome === 'FAILED') log.error(fields, 'pipeline failed')
      else log.info(fields, 'pipeline ended')
      break
    }
    case 'restart planned': {
      const fields = { ...about, attempt: fact.attempt, most: fact.most || 'no limit', delay_ms: fact.delayMs }
      log.warn(fields, 'pipeline will be started again')
      break
    }
    case 'given up': {
      const fields = { ...about, restarts: fact.restarts, ...given({ error: fact.error }) }
      log.error(fields, 'pipeline is not started again: its restart policy has no restart left')
      break
    }
    case 'restart cancelled': {
      const why = fact.by === 'stop' ? 'it was stopped' : 'its restart policy was changed'
      log.info(about, `pipeline is not started again: ${why} while it waited`)
      break
    }
    case 'lines lost':
      logLostLines(log, { ...about, file: fact.file, lines: fact.lines, error: fact.error })
      break
    case 'metrics not shared':
      log.error(
        { ...about, file: fact.file, error: fact.error },
        'metrics of a run are not written to their file: make room on its disk, let the node write it, and leave it to one run; told once until it takes them again',
      )
      break
  }
}

/** What tells `log` of threads that die while no run has them: without the means for one that may be many a second, so the same comes once a minute. */
export function spareThreadLog(log: FactLog): (error: Error) => void {
  const told = new ToldLately()
  return (error) => {
    const times = told.happened((error as NodeJS.ErrnoException).code ?? error.message)
    if (times === undefined) return
    const cause = error instanceof NoThread ? { error: error.message } : { err: error }
    log.error({ times, ...cause }, 'a thread kept ready for the next runs died')
  }
}

/** Lines of a run's log, or of what a log filter makes of it, that `file` did not take. */
export function logLostLines(log: FactLog, lost: { run: string; file: string; lines: number; error: string }): void {
  log.error(
    lost,
    'log lines of a run are lost: make room on the disk of that file, or let the node write it; told once until it takes lines again',
  )
}

export function logHub(log: FactLog, fact: HubFact): void {
  const about = { node: fact.nodeId, name: fact.name }
  switch (fact.kind) {
    case 'asked':
      log.info({ ...about, request: Number(fact.requestId), address: fact.address }, 'node asks to join the hub')
      break
    case 'answered': {
      const fields = { ...about, request: Number(fact.requestId), ...callerFields(fact.caller) }
      log.info(fields, `request to join ${fact.accept ? 'accepted' : 'rejected'}`)
      break
    }
    case 'not answered': {
      const fields = { ...about, request: Number(fact.requestId), ...callerFields(fact.caller) }
      const verdict = fact.accept ? 'accepted' : 'rejected'
      log.warn({ ...fields, error: messageOf(fact.error) }, `request to join could not be ${verdict}`)
      break
    }
    case 'withdrawn':
      log.info({ ...about, request: Number(fact.requestId) }, 'request to join withdrawn')
      break
    case 'timed out':
      log.warn({ ...about, request: Number(fact.requestId) }, 'request to join timed out: nobody answered it')
      break
    case 'joined':
      log.info(about, 'node joined the hub')
      break
    case 'link up':
      log.info({ ...about, address: fact.address }, 'link up')
      break
    case 'link down':
      log[levelOf(fact.end, 'hub')]({ ...about, address: fact.address, ...endFields(fact.end, 'node') }, 'link down')
      break
    case 'left':
      log.info(about, 'node left the hub')
      break
    case 'gone elsewhere':
      log.info(about, 'node left the hub or was removed from it at another server, whose log says which')
      break
    case 'removed':
      log.info({ ...about, ...callerFields(fact.caller) }, 'node removed from the hub')
      break
  }
}

export function logServer(log: FactLog, fact: ServerFact): void {
  const about = { server: fact.server, ...('address' in fact ? { address: fact.address } : {}) }
  switch (fact.kind) {
    case 'server up':
      log.info(about, 'another server of the hub is up')
      break
    case 'server gone':
      log.warn(
        about,
        'another server of the hub is gone: its lease has ended, its nodes are offline until they come to others',
      )
      break
    case 'server link up':
      log.info(about, 'link with another server of the hub up')
      break
    case 'server link down':
      log[levelOf(fact.end, 'hub')](
        { ...about, ...endFields(fact.end, 'server') },
        'link with another server of the hub down',
      )
      break
    case 'server link failed':
      log.warn({ ...about, error: messageOf(fact.error) }, 'no link with another server of the hub')
      break
  }
}

export function logMembership(log: FactLog, fact: MembershipFact): void {
  const about = { hub: fact.hub }
  switch (fact.kind) {
    case 'signed in':
      log.info(about, 'signed in to the hub')
      break
    case 'signed out':
      log.info(about, 'signed out of the hub')
      break
    case 'link up':
      log.info(about, 'link to the hub up')
      break
    case 'link down':
      log[levelOf(fact.end, 'node')]({ ...about, ...endFields(fact.end, 'hub') }, 'link to the hub down')
      break
    case 'link failed':
      log.warn({ ...about, error: messageOf(fact.error) }, 'no link to the hub')
      break
    case 'removed':
      log.warn(about, 'the hub has removed this node: it is signed out')
      break
    case 'replaced':
      log.warn(
        about,
        "the hub has taken another connection with this node's key in place of this one: " +
          'is the data directory, or a copy of it, in use by another node?',
      )
      break
    case 'sign-in not deleted':
      log.error({ ...about, err: fact.error }, 'the sign-in could not be removed from the disk')
      break
    case 'certificate renewed':
      log.warn(
        { ...about, fingerprint: fingerprintText(fact.fingerprint) },
        'the hub has renewed its certificate, with the same key',
      )
      break
    case 'certificate not pinned':
      log.error({ ...about, err: fact.error }, 'the certificate of the hub could not be pinned on the disk')
      break
    case 'servers not kept':
      log.error({ ...about, err: fact.error }, "where the hub's servers are could not be written to the disk")
      break
  }
}

/** Ends that are part of normal life, by who sees them: on a hub a node that comes anew replaces its link. */
const NORMAL: Record<'hub' | 'node', ReadonlySet<string>> = {
  hub: new Set(['SHUTDOWN', 'LEFT', 'REMOVED', 'REPLACED']),
  node: new Set(['SHUTDOWN', 'LEFT']),
}

function levelOf({ reason }: LinkEnd, side: 'hub' | 'node'): FactLevel {
  return NORMAL[side].has(reason) ? 'info' : 'warn'
}

function endFields({ reason, message, byPeer }: LinkEnd, peer: string) {
  return { reason, ...(message === '' ? {} : { cause: message }), ended_by: byPeer ? `the ${peer}` : 'this side' }
}

function callerFields({ by, transport, address }: FactCaller) {
  return { by, transport, ...(address === '' ? {} : { address }) }
}

/** The fields that are there. */
function given<F extends object>(fields: F): Partial<F> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<F>
}
