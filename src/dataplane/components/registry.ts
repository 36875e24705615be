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
import { bandwidthLimitConstant } from './emulation/bandwidth-limit-constant.ts'
import { delayConstant } from './emulation/delay-constant.ts'
import { gilbertElliotLoss } from './emulation/gilbert-elliot-loss.ts'
import { uniformLoss } from './emulation/uniform-loss.ts'
import { peerWriter } from './endpoints/peer-writer.ts'
import { tun } from './endpoints/tun.ts'
import { udp } from './endpoints/udp.ts'
import { udpLocal } from './endpoints/udp-local.ts'
import { udpRemote } from './endpoints/udp-remote.ts'
import { reedSolomonDecoder } from './fec/reed-solomon-decoder.ts'
import { reedSolomonEncoder } from './fec/reed-solomon-encoder.ts'
import { flowCombiner } from './routing/flow-combiner.ts'
import { splitter } from './routing/splitter.ts'
import { bandwidthTrafficSource } from './sources/bandwidth-traffic-source.ts'
import { throughputTrafficSource } from './sources/throughput-traffic-source.ts'
import { trafficSink } from './sources/traffic-sink.ts'
import { uniformTrafficSource } from './sources/uniform-traffic-source.ts'
import { observer } from './trackers/observer.ts'
import { throughputTracker } from './trackers/throughput-tracker.ts'

const definitions: AnyComponent[] = [
  bandwidthLimitConstant,
  bandwidthTrafficSource,
  chacha20Decrypt,
  chacha20Encrypt,
  constantAuthSign,
  constantAuthVerify,
  delayConstant,
  flowCombiner,
  gilbertElliotLoss,
  observer,
  peerWriter,
  reedSolomonDecoder,
  reedSolomonEncoder,
  splitter,
  sslDecrypt,
  sslEncrypt,
  sslPoly1305Checker,
  sslPoly1305Signer,
  throughputTracker,
  throughputTrafficSource,
  trafficSink,
  tun,
  udp,
  udpLocal,
  udpRemote,
  uniformLoss,
  uniformTrafficSource,
]

export const components: Registry = new Map(definitions.map((definition) => [definition.key, definition]))
