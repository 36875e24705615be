/** The configurations of `fec advise`: the simulated link with a code over it, and the code's two ends between sockets. */
import { type Candidate, type Link, spacing } from './fec-codes.ts'

type Component = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** A configuration as it stands in a file. */
export interface Written {
  readonly version: number
  readonly engine_config: { readonly pipeline: Readonly<Record<string, Component>> }
}

const configuration = (pipeline: Record<string, Component>): Written => ({ version: 1, engine_config: { pipeline } })

function between(component: Component, input: string, output: string): Component {
  return Object.fromEntries(Object.entries(component).map(([key, fields]) => [key, { input, output, ...fields }]))
}

/** The model of the link: each packet lost by itself, or in bursts as Gilbert (1960) modelled them. */
function lossOf({ loss, burst }: Link): Component {
  if (burst <= 1) return { uniform_loss: { loss_prob: loss } }
  const back = 1 / burst
  return {
    gilbert_elliot_loss: {
      good_loss_prob: 0,
      bad_loss_prob: 1,
      good_to_bad_prob: Number(((loss * back) / (1 - loss)).toPrecision(12)),
      bad_to_good_prob: Number(back.toPrecision(12)),
    },
  }
}

/** Time that the source needs for so many packets, whole ms. */
export const timeFor = (packets: number, link: Link): number => Math.ceil(packets * spacing(link))

/** Time after the source's end in which nothing more is recovered, ms. */
export const drainOf = ({ budget }: Link): number => 4 * budget + 1000

/** A source, the code over the link, and a sink that counts what came within the budget; without a candidate the bare link. */
export function simulationOf(link: Link, candidate: Candidate | undefined, packets: number): Written {
  const source = {
    throughput_traffic_source: {
      output: 'payloads',
      throughput_mbit: link.rate,
      payload_size: link.packet,
      duration_ms: timeFor(packets, link),
    },
  }
  const sink = { traffic_sink: { input: 'recovered', latency_budget: link.budget } }
  if (candidate === undefined) {
    return configuration({ source, loss: between(lossOf(link), 'payloads', 'recovered'), sink })
  }
  return configuration({
    source,
    encoder: between(candidate.encoder, 'payloads', 'coded'),
    loss: between(lossOf(link), 'coded', 'arrived'),
    decoder: between(candidate.decoder, 'arrived', 'recovered'),
    sink,
  })
}

/** What the application sends to, the address that the receiver listens at, and where it sends on to: for a trial on one machine. */
export const ADDRESSES = { application: '127.0.0.1:9000', link: '127.0.0.1:9001', target: '127.0.0.1:9002' } as const

/** The sender's side: datagrams of an application, coded, to the receiver. */
export function senderOf({ encoder }: Candidate): Written {
  return configuration({
    application: { udp_local: { address: ADDRESSES.application, output: 'payloads' } },
    encoder: between(encoder, 'payloads', 'coded'),
    link: { udp: { remote_address: ADDRESSES.link, input: 'coded' } },
  })
}

/** The receiver's side: what came over the link, decoded, to the application there. */
export function receiverOf({ decoder }: Candidate): Written {
  return configuration({
    link: { udp_local: { address: ADDRESSES.link, output: 'arrived' } },
    decoder: between(decoder, 'arrived', 'recovered'),
    application: { udp: { remote_address: ADDRESSES.target, input: 'recovered' } },
  })
}
