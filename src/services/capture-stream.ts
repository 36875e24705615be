/** Streams copies of a run's packets to a caller, as fast as it takes them. */
import type { Timers } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { Sink } from '../contract/handlers.ts'
import type { CapturedPackets, OpenCaptureStreamRequest } from '../contract/types.ts'
import type { CaptureOptions } from '../dataplane/engine/capture.ts'
import { capturedLinks } from '../dataplane/engine/captured-links.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import type { Capture } from '../dataplane/engine/run.ts'
import { suggestion } from '../text/names.ts'

/** Time between two looks at what has come. */
const CAPTURE_MS = 20
/** Bytes of packets in one message, at most, but for a single packet. */
const MAX_MESSAGE_BYTES = 256 << 10
/** The longest packet there is. */
const MAX_PACKET_BYTES = 65_535

export interface CapturePlan {
  readonly options: CaptureOptions
  /** Names of the connection points. */
  readonly links: readonly string[]
}

/** What a request means for a run of `config`. Throws NOT_FOUND, INVALID_ARGUMENT or FAILED_PRECONDITION with what can be captured instead. */
export function planCapture(
  request: OpenCaptureStreamRequest,
  config: PipelineConfig,
  registry: Registry,
): CapturePlan {
  const { component, side, snapLength } = request
  const names = Object.keys(config.components)
  if (component === '') throw new ServiceError('INVALID_ARGUMENT', `/component: name one of ${names.join(', ')}`)
  if (!Object.hasOwn(config.components, component)) {
    throw new ServiceError('NOT_FOUND', `the run has no component "${component}".${suggestion(component, names)}`)
  }
  const length = Math.min(snapLength ?? MAX_PACKET_BYTES, MAX_PACKET_BYTES)
  for (const looked of side === 'OUTPUT' ? (['output', 'input'] as const) : (['input'] as const)) {
    const options = { component, side: looked, length }
    const links = capturedLinks(config, registry, options)
    if (links.length > 0) return { options, links }
  }
  const other = side === 'INPUT' ? 'inputs: capture what leaves it' : 'connections'
  throw new ServiceError('FAILED_PRECONDITION', `component "${component}" has no ${other}`)
}

/** Why nothing can be captured of a run that has no thread. */
export function notOn(runId: string): ServiceError {
  return new ServiceError('FAILED_PRECONDITION', `run ${runId} is not on: packets are captured while a run is`)
}

/** Sends what comes out of `capture` until the caller leaves. What it returns is called when the run is over: it ends the stream with all that was there. */
export function streamCapture(
  sink: Sink<CapturedPackets>,
  { links }: CapturePlan,
  capture: Capture,
  clock: Timers,
): () => void {
  const { reader } = capture
  let isOver = false
  let told = 0
  let timer: unknown
  const pass = (): void => {
    while (!sink.closed && sink.writable) {
      const packets = reader.read(MAX_MESSAGE_BYTES)
      if (packets.length === 0 && reader.dropped === told) break
      told = reader.dropped
      sink.send({
        packets: packets.map((packet) => ({ ...packet, time: BigInt(Math.round(packet.time)) })),
        dropped: told,
        links: [],
      })
    }
    if (isOver && sink.writable) sink.end()
  }
  const look = (): void => {
    pass()
    if (!sink.closed) timer = clock.setTimeout(look, CAPTURE_MS)
  }
  sink.onClose(() => {
    clock.clearTimeout(timer)
    capture.close()
  })
  sink.send({ packets: [], dropped: 0, links: [...links] })
  timer = clock.setTimeout(look, CAPTURE_MS)
  return () => {
    isOver = true
    pass()
  }
}
