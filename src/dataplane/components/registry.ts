/** The one registry of components: key to definition, for those that are available. */
import type { AnyComponent, Registry } from '../engine/component.ts'
import { chacha20Decrypt } from './crypto/chacha20-decrypt.ts'
import { chacha20Encrypt } from './crypto/chacha20-encrypt.ts'
import { constantAuthSign } from './crypto/constant-auth-sign.ts'
import { constantAuthVerify } from './crypto/constant-auth-verify.ts'
import { sslDecrypt } from './crypto/ssl-decrypt.ts'
import { sslEncrypt } from './crypto/ssl-encrypt.ts'
import { sslPoly1305Checker } from './crypto/ssl-poly1305-checker.ts'
import { sslPoly1305Signer } from './crypto/ssl-poly1305-signer.ts'
import { bandwidthConstrictor } from './emulation/bandwidth-constrictor.ts'
import { bandwidthConstrictorSequencer } from './emulation/bandwidth-constrictor-sequencer.ts'
import { bandwidthLimitConstant } from './emulation/bandwidth-limit-constant.ts'
import { bandwidthLimitDynamic } from './emulation/bandwidth-limit-dynamic.ts'
import { delayConstant } from './emulation/delay-constant.ts'
import { delayDynamic } from './emulation/delay-dynamic.ts'
import { delayFixed } from './emulation/delay-fixed.ts'
import { delayFixedSequencer } from './emulation/delay-fixed-sequencer.ts'
import { delayJitter } from './emulation/delay-jitter.ts'
import { gilbertElliotLoss } from './emulation/gilbert-elliot-loss.ts'
import { lossConstant } from './emulation/loss-constant.ts'
import { lossDynamic } from './emulation/loss-dynamic.ts'
import { lossGilbertElliot } from './emulation/loss-gilbert-elliot.ts'
import { periodicBurstLoss } from './emulation/periodic-burst-loss.ts'
import { randomBurstLoss } from './emulation/random-burst-loss.ts'
import { timedBurstLoss } from './emulation/timed-burst-loss.ts'
import { uniformLoss } from './emulation/uniform-loss.ts'
import { uniformLossSequencer } from './emulation/uniform-loss-sequencer.ts'
import { peerRouter } from './endpoints/peer-router.ts'
import { peerWriter } from './endpoints/peer-writer.ts'
import { simulatedNetwork } from './endpoints/simulated-network.ts'
import { tap } from './endpoints/tap.ts'
import { tcp } from './endpoints/tcp.ts'
import { tun } from './endpoints/tun.ts'
import { udp } from './endpoints/udp.ts'
import { udpLocal } from './endpoints/udp-local.ts'
import { udpRemote } from './endpoints/udp-remote.ts'
import { unixSocket } from './endpoints/unix-socket.ts'
import { kodokDecoder } from './fec/kodok-decoder.ts'
import { kodokEncoder } from './fec/kodok-encoder.ts'
import { parity2dDecoder } from './fec/parity-2d-decoder.ts'
import { parity2dEncoder } from './fec/parity-2d-encoder.ts'
import { reedSolomonDecoder } from './fec/reed-solomon-decoder.ts'
import { reedSolomonEncoder } from './fec/reed-solomon-encoder.ts'
import { relyDecoder } from './fec/rely-decoder.ts'
import { relyEncoder } from './fec/rely-encoder.ts'
import { rlncDecoder } from './fec/rlnc-decoder.ts'
import { rlncEncoder } from './fec/rlnc-encoder.ts'
import { raft } from './raft/raft.ts'
import { bomb } from './routing/bomb.ts'
import { clientIdReader } from './routing/client-id-reader.ts'
import { clientIdWriter } from './routing/client-id-writer.ts'
import { defragmentizer } from './routing/defragmentizer.ts'
import { flowCombiner } from './routing/flow-combiner.ts'
import { flowFilter } from './routing/flow-filter.ts'
import { fragmentizer } from './routing/fragmentizer.ts'
import { gate } from './routing/gate.ts'
import { notificationInjector } from './routing/notification-injector.ts'
import { relayNetworkLookup } from './routing/relay-network-lookup.ts'
import { relayRoutingFabric } from './routing/relay-routing-fabric.ts'
import { sessionReader } from './routing/session-reader.ts'
import { sessionWriter } from './routing/session-writer.ts'
import { splitter } from './routing/splitter.ts'
import { tagDemux } from './routing/tag-demux.ts'
import { tagMux } from './routing/tag-mux.ts'
import { bandwidthTrafficSource } from './sources/bandwidth-traffic-source.ts'
import { sporadicTrafficSource } from './sources/sporadic-traffic-source.ts'
import { throughputTrafficSource } from './sources/throughput-traffic-source.ts'
import { traceTrafficSource } from './sources/trace-traffic-source.ts'
import { trafficSink } from './sources/traffic-sink.ts'
import { uniformTrafficSource } from './sources/uniform-traffic-source.ts'
import { videoTrafficSource } from './sources/video-traffic-source.ts'
import { bandwidthTracker } from './trackers/bandwidth-tracker.ts'
import { latencyTrackerReceiver } from './trackers/latency-tracker-receiver.ts'
import { latencyTrackerSender } from './trackers/latency-tracker-sender.ts'
import { lossTrackerReceiver } from './trackers/loss-tracker-receiver.ts'
import { lossTrackerSender } from './trackers/loss-tracker-sender.ts'
import { observer } from './trackers/observer.ts'
import { rtpObserver } from './trackers/rtp-observer.ts'
import { throughputTracker } from './trackers/throughput-tracker.ts'

const definitions: AnyComponent[] = [
  bandwidthConstrictor,
  bandwidthConstrictorSequencer,
  bandwidthLimitConstant,
  bandwidthLimitDynamic,
  bandwidthTracker,
  bandwidthTrafficSource,
  bomb,
  chacha20Decrypt,
  chacha20Encrypt,
  clientIdReader,
  clientIdWriter,
  constantAuthSign,
  constantAuthVerify,
  defragmentizer,
  delayConstant,
  delayDynamic,
  delayFixed,
  delayFixedSequencer,
  delayJitter,
  flowCombiner,
  flowFilter,
  fragmentizer,
  gate,
  gilbertElliotLoss,
  kodokDecoder,
  kodokEncoder,
  latencyTrackerReceiver,
  latencyTrackerSender,
  lossConstant,
  lossDynamic,
  lossGilbertElliot,
  lossTrackerReceiver,
  lossTrackerSender,
  notificationInjector,
  observer,
  parity2dDecoder,
  parity2dEncoder,
  peerRouter,
  peerWriter,
  periodicBurstLoss,
  raft,
  randomBurstLoss,
  reedSolomonDecoder,
  reedSolomonEncoder,
  relayNetworkLookup,
  relayRoutingFabric,
  relyDecoder,
  relyEncoder,
  rlncDecoder,
  rlncEncoder,
  rtpObserver,
  sessionReader,
  sessionWriter,
  simulatedNetwork,
  splitter,
  sporadicTrafficSource,
  sslDecrypt,
  sslEncrypt,
  sslPoly1305Checker,
  sslPoly1305Signer,
  tagDemux,
  tagMux,
  tap,
  tcp,
  throughputTracker,
  throughputTrafficSource,
  timedBurstLoss,
  traceTrafficSource,
  trafficSink,
  tun,
  udp,
  udpLocal,
  udpRemote,
  uniformLoss,
  uniformLossSequencer,
  uniformTrafficSource,
  videoTrafficSource,
  unixSocket,
]

export const components: Registry = new Map(definitions.map((definition) => [definition.key, definition]))
