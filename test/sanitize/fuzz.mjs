/**
 * One round of fuzzing the addon's whole face: threads that share descriptors, owners and packet memory call every exported function
 * with right and wrong arguments. Arguments: --seed, --seconds, --threads, --calls (a file where each thread notes its last call),
 * --devices (TUN devices may be opened), --count (calls of each thread, where they are done before the seconds are over).
 * Prints how often each function was called and how often it did what it was asked. With one thread the seed decides everything.
 */
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { root } from './addon.mjs'
import { hostile, number, Random, spoiled, typedArray } from './values.mjs'

const native = createRequire(import.meta.url)('node-gyp-build')(root)
const KINDS = ['event', 'poller', 'udp', 'routes', 'tun', 'listener', 'connection', 'aead', 'chacha', 'lock']
/** What opens a descriptor of a kind, where its name does not say so. */
const OPENING = {
  tcpListen: 'listener',
  unixListen: 'listener',
  tcpConnect: 'connection',
  unixConnect: 'connection',
  listenerAccept: 'connection',
}
const HANDLES = 5
const SLOTS = 80
const SLOT_BYTES = 2048
/** Words of a run of blockHeaders, and what it says of a packet. */
const RUN_WORDS = 8
const [SOURCE_PACKET, BEGINS_RUN] = [1 << 16, 1 << 17]
/** Of a window of blocksPass. */
const [WINDOW_SYMBOLS, WINDOW_PLACES, WINDOW_WORDS] = [4096, 512, 14_336]
const TRAINS = 2
const shared = (Type, length) => new Type(new SharedArrayBuffer(length * Type.BYTES_PER_ELEMENT))

/** Packet memory with every slot free. */
function packetMemory() {
  const memory = {
    data: shared(Uint8Array, SLOTS * SLOT_BYTES + TRAINS * 65_536),
    offset: shared(Int32Array, SLOTS),
    length: shared(Int32Array, SLOTS),
    arrival: shared(Float64Array, SLOTS),
    remote: shared(Uint8Array, SLOTS * 32),
    client: shared(Float64Array, SLOTS),
    free: shared(Int32Array, SLOTS + 1),
    train: shared(Int32Array, SLOTS),
    trainReferences: shared(Int32Array, TRAINS),
    trainFree: shared(Int32Array, TRAINS + 1),
    slotBytes: SLOT_BYTES,
    headroom: 128,
    tailroom: 64,
  }
  mend(memory)
  return memory
}

/** Registers the memory that other threads may be damaging at this moment. */
function openShared(memory) {
  for (;;) {
    mend(memory)
    try {
      return native.memoryOpen(memory)
    } catch {}
  }
}

function mend(memory) {
  memory.free[0] = SLOTS
  memory.free.fill(0, 1)
  memory.train.fill(0)
  memory.trainReferences.fill(0)
  memory.trainFree[0] = TRAINS
  memory.trainFree.fill(0, 1)
}

if (isMainThread) await main()
else fuzz(workerData)

async function main() {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '2' },
      count: { type: 'string', default: 'Infinity' },
      threads: { type: 'string', default: '3' },
      calls: { type: 'string', default: '/dev/null' },
      devices: { type: 'boolean', default: false },
    },
  })
  const threads = Number(values.threads)
  const world = {
    memory: packetMemory(),
    tables: Object.fromEntries(
      [...KINDS, 'owner', 'port', 'listening'].map((kind) => [kind, shared(Int32Array, HANDLES)]),
    ),
  }
  const descriptors = () => readdirSync('/proc/self/fd').length
  const start = async (data) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: data })
    let summary
    worker.on('message', (message) => {
      summary = message
    })
    await new Promise((resolve, reject) => worker.on('error', reject).on('exit', resolve))
    return summary
  }
  const common = {
    world,
    seconds: Number(values.seconds),
    count: Number(values.count),
    calls: values.calls,
    alone: threads === 1,
    devicesToOpen: values.devices ? 6 : 0,
  }
  await start({ ...common, seed: 0, thread: threads, seconds: 0 }) // what a first thread opens for good is open now
  const before = descriptors()
  const work = Array.from({ length: threads }, (_, thread) =>
    start({ ...common, seed: Number(values.seed) * 31 + thread, thread }),
  )
  const summaries = await Promise.all(work)
  const total = {}
  for (const summary of summaries) {
    for (const [name, [called, done]] of Object.entries(summary)) {
      total[name] ??= [0, 0]
      total[name][0] += called
      total[name][1] += done
    }
  }
  const problems = []
  if (native.openDescriptors() !== 0) problems.push(`${native.openDescriptors()} descriptors are open without an owner`)
  if (descriptors() !== before) problems.push(`${descriptors()} file descriptors are open, ${before} were before`)
  const maps = readFileSync('/proc/self/maps', 'utf8')
  const sanitized = maps.includes('/libasan.so') && maps.includes('/build-sanitize/')
  console.log(JSON.stringify({ total, problems, sanitized }))
  if (problems.length > 0) process.exit(1)
}

/** What one thread does until its time is over. */
function fuzz({ world, seed, seconds, count, thread, calls, alone, devicesToOpen }) {
  const random = new Random(seed)
  const { tables } = world
  const note = openSync(calls, 'r+')
  const summary = Object.fromEntries(Object.keys(native).map((name) => [name, [0, 0]]))
  /** The first is this thread's own until the end, the others come and go and are everybody's. */
  const owners = [native.ownerOpen()]
  /** Pollers with what they watch. */
  const watches = []
  /** This thread's memories, by id; the first is the one that all threads share. */
  const memories = new Map([[openShared(world.memory), world.memory]])
  /** This thread's sliding windows, and a repair in a slab: its window of sources, key, place and bytes. */
  const windows = []
  let made = [0, 1, 0, 0, 2]
  /** Memories that are what they seem. */
  const whole = new WeakSet()
  const spare = packetMemory()
  let depth = 0
  let devices = 0
  let watched = 0

  const put = (kind, value) => Atomics.exchange(tables[kind], random.below(HANDLES), value)
  const get = (kind) => Atomics.load(tables[kind], random.below(HANDLES))
  const owner = () => (random.chance(0.8) ? owners[0] : random.chance(0.5) ? random.pick(owners) : get('owner'))
  const memoryId = () => random.pick([...memories.keys()])
  const ints = (length = random.pick([1, 4, 64, 100, 300])) => new Int32Array(length)
  const counters = () => new Float64Array(random.pick([9, 9, 9, 10]))

  /** A packet's first bytes are those of IP headers, often enough right for its neighbours to be joined with it. */
  function headers(data, at, length, next) {
    const view = new DataView(data.buffer, data.byteOffset + at, length)
    if (length < 60) return
    view.setUint16(0, 0x4500)
    view.setUint16(2, length)
    view.setUint32(4, 0x4000)
    view.setUint16(8, random.chance(0.5) ? 0x4011 : 0x4006)
    view.setUint32(12, 0x0a400002)
    view.setUint32(16, 0x0a400001)
    view.setUint32(20, 0x1e611e61)
    view.setUint16(24, view.getUint8(9) === 17 ? length - 20 : 0)
    if (view.getUint8(9) === 6) {
      view.setUint32(24, next * (length - 40))
      view.setUint16(32, 0x5010)
    }
    for (const [from, to, field, start] of [
      [0, 20, 10, 0],
      [20, length, view.getUint8(9) === 17 ? 26 : 36, 0x1480 + view.getUint8(9) + length - 20],
    ]) {
      view.setUint16(field, 0)
      let sum = from === 0 ? 0 : start + 3
      for (let i = from; i < to; i += 2) sum += i + 1 < to ? view.getUint16(i) : view.getUint8(i) << 8
      while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
      view.setUint16(field, ~sum & 0xffff || 0xffff)
    }
    if (random.chance(0.1)) data[at + random.below(length)] ^= 1 << random.below(8)
  }

  /** Takes free slots and makes packets of them; sometimes their places are wrong. */
  function packets(id, most = 40) {
    const memory = memories.get(id)
    const handles = []
    const length = random.pick([0, 1, 60, 500, 1000, 1400])
    for (let i = random.below(most); i > 0; i--) {
      const count = memory.free[0]
      if (!(count > 0 && count <= SLOTS)) break
      const handle = memory.free[count] + SLOTS - count
      memory.free[0] = count - 1
      if (!(handle >= 0 && handle < SLOTS)) break
      const at = handle * SLOT_BYTES + 128
      memory.offset[handle] = at
      const bytes = random.chance(0.9) ? length : random.below(1400)
      memory.length[handle] = bytes
      headers(memory.data, at, bytes, handles.length)
      const remote = new DataView(memory.remote.buffer, memory.remote.byteOffset + handle * 32, 32)
      remote.setUint8(0, random.pick([4, 4, 4, 6, 0, 9]))
      remote.setUint16(2, get('port') & 0xffff, true)
      remote.setUint32(8, remote.getUint8(0) === 4 ? 0x7f000001 : 0)
      remote.setUint8(23, 1)
      handles.push(handle)
    }
    return Int32Array.from(handles)
  }

  function udpOptions() {
    const six = random.chance(0.2)
    const device = !six && random.chance(0.15)
    const address = device ? '10.64.0.1' : six ? '::1' : '127.0.0.1'
    return {
      backend: random.below(3),
      family: random.pick([4, 4, 6]),
      mtu: random.pick([1, 500, 1472, 65_535]),
      ...(random.chance(0.8) && { local: { address, port: 0 } }),
      ...((device || random.chance(0.6)) && {
        remote: { address: device ? '10.64.0.2' : address, port: get('port') & 0xffff || 9 },
      }),
      ...(random.chance(0.1) && { interface: 'lo' }),
      ...(random.chance(0.3) && { arrivalTimes: random.chance(0.8) }),
      ...(random.chance(0.3) && { bufferBytes: random.pick([0, 4096, 1 << 20]) }),
      ...(random.chance(0.1) && { multicastGroup: '239.1.2.3', multicastTtl: 0 }),
      ...(random.chance(0.2) && { chosenPort: random.chance(0.5) }),
      ...(random.chance(0.1) && { groupInterface: random.chance(0.5) ? 'lo' : 'nowhere' }),
    }
  }

  const unixName = () => random.pick([`@${process.pid}.fuzz`, 'socket'])
  const maybeSpoiled = (options) => (random.chance(0.85) ? options : spoiled(random, options, act))

  function receiveArguments(kind) {
    const handles = ints(random.pick([64, 100, 300]))
    return [get(kind), memoryId(), handles, random.pick([1, 7, handles.length]), 3, counters()]
  }

  function sendArguments(kind) {
    const id = memoryId()
    const handles = packets(id)
    const from = random.chance(0.8) ? 0 : random.below(handles.length + 1)
    return [get(kind), id, handles, from, handles.length - from, counters()]
  }

  function gfArguments() {
    const [k, m] = [random.below(9), random.below(9)]
    const bytes = random.pick([0, 1, 15, 64, 200, 1400])
    const places = Int32Array.from({ length: k + m }, () => random.below(SLOTS) * SLOT_BYTES + random.below(600))
    const lengths = random.chance(0.5) ? Int32Array.from({ length: k }, () => random.below(bytes + 10)) : null
    return [memoryId(), new Uint8Array(k * m).fill(random.below(256)), places, k, m, bytes, lengths]
  }

  const firstSeed = () => random.pick([0, 1, 0xffffffff, random.below(2 ** 31)])
  const header = () => Int32Array.of(ints(1)[0], 77, random.below(100))

  /** What the last blockFrame wrote to, as blocks with room for products, as it is or changed since. */
  let framed = null
  const framedArguments = () => [
    framed.id,
    framed.symbols,
    framed.blocks,
    framed.sources,
    framed.stride - framed.sources,
  ]
  const isFramed = () => framed && framed.stride > framed.sources && random.chance(0.5)

  function productArguments() {
    if (!isFramed()) return packetProductArguments()
    const [id, symbols, blocks, k, m] = framedArguments()
    return [id, new Uint8Array(k * m).fill(7), symbols, blocks, k, m, 12, 0, -1, header(), random.chance(0.8)]
  }

  function randomPacketArguments() {
    if (isFramed()) return [framed.id, firstSeed(), ...framedArguments().slice(1), 12, 4, header(), random.chance(0.8)]
    const [id, , packets, blocks, k, m, skip] = packetProductArguments()
    return [id, firstSeed(), packets, blocks, k, m, skip, random.below(20)]
  }

  /** A block of which some symbols are at hand, mostly enough of them. */
  function recoverArguments() {
    const id = memoryId()
    const [k, r] = [1 + random.below(6), random.below(6)]
    const [from, wanted] = [random.below(3), random.chance(0.8) ? k : 1 + random.below(k)]
    const atHand = packets(id)
    const lost = random.below(r + 1)
    const symbols = new Int32Array(from + k + r)
    for (let n = lost; n < k + r && n < atHand.length; n++) symbols[from + n] = atHand[n] + 1
    const bytes = random.pick([2, 64, 500, 1400, SLOT_BYTES])
    return [id, symbols, from, k, r, wanted, bytes, random.below(SLOTS), new Int32Array(3 * Math.min(wanted, r))]
  }

  /** The memory and the packets whose headers were read last. */
  let received = null

  /** Blocks of the packets at hand, or of those whose headers were read, one after the other, each with some sources and some repairs. */
  function passArguments() {
    const known = received && random.chance(0.5) ? received : null
    const id = known?.id ?? memoryId()
    const list = known?.list ?? Int32Array.from(packets(id))
    const headers = Array(list.length).fill(0)
    const [k, r] = [1 + random.below(6), random.below(9)]
    const runs = []
    // Now and then one has only its first sources, or only its last ones and repairs.
    let begun = random.chance(0.3) ? 1 + random.below(k) : 0
    const had = begun
    for (let at = 0; at < list.length && runs.length < 8 * RUN_WORDS; ) {
      const wanted = 1 + random.below(k)
      const whole = 1 + random.below(wanted)
      const sources = begun > 0 ? k - begun : random.chance(0.2) ? 1 + random.below(k) : whole
      const count = Math.min(list.length - at, sources + random.below(4))
      if (count < sources) break
      for (let n = 0; n < count; n++) {
        const word = n < sources ? SOURCE_PACKET | (begun + n) : ((sources === whole ? wanted : k) << 8) | (n - sources)
        headers[at + n] = word | (n === 0 ? BEGINS_RUN : 0)
      }
      const bytes = random.pick([2, 64, 500, 1400, SLOT_BYTES])
      runs.push((k << 8) | r, 77, runs.length / RUN_WORDS, count, sources, sources === whole ? wanted : 0, bytes, bytes)
      begun = 0
      at += count
    }
    const window = new Int32Array(WINDOW_WORDS)
    const places = random.pick([1, 8])
    // The first block is open, and its sources have come that are not in the run.
    if (had > 0) {
      const bytes = new Uint8Array(window.buffer, 4 * (3 * WINDOW_SYMBOLS + 2 * WINDOW_PLACES) + 2 * WINDOW_PLACES)
      bytes[0] = random.pick([1, 2])
      bytes[WINDOW_PLACES] = had
      bytes[4 * WINDOW_PLACES] = had
      bytes[3 * WINDOW_PLACES] = random.pick([0, k])
      for (let n = 0; n < had; n++) window[n] = random.below(SLOTS + 3)
    }
    const pass = [list.length, 0, list.length, 1 + random.below(9), random.pick([0, -1]), places, random.below(2)]
    return [
      id,
      random.chance(0.5),
      list,
      Int32Array.from([...headers, ...runs, ...new Int32Array(random.pick([0, 8 * list.length]))]),
      window,
      Int32Array.from([...pass, ...new Int32Array(10), (k << 8) | r, 77]),
      new Int32Array(random.chance(0.9) ? list.length : random.below(8)),
      ...(random.chance(0.2) ? [Int32Array.of(0xb0, 0xb1, random.pick([12, 16]), 255, 0)] : []),
    ]
  }

  function randomArguments() {
    const [id, , places, k, m, bytes, lengths] = gfArguments()
    return [id, firstSeed(), places, k, m, bytes, lengths]
  }

  /** A table of a block with some sources known and some combinations, now and then of one that was half solved. */
  function solveArguments() {
    const [mostColumns, mostRows] = [1 + random.below(12), random.below(9)]
    const columns = 1 + random.below(mostColumns)
    const place = () => random.below(SLOTS) * SLOT_BYTES + random.below(600)
    const bytes = random.pick([0, 1, 15, 64, 200, 1400])
    const taken = random.below(mostRows + 1)
    const done = random.chance(0.5) ? 0 : random.below(taken + 1)
    const rows = random.below(done + 1)
    const room = random.chance(0.8) ? columns : random.below(columns)
    const list = (length, make) => Array.from({ length }, make)
    const head = [mostColumns, mostRows, columns, taken, rows, done, room, bytes]
    if (random.chance(0.1)) head[random.below(head.length)] = random.below(300)
    const stride = (mostColumns + mostRows + 63) & ~63
    const table = [
      ...head,
      ...list(mostColumns, () => (random.chance(0.5) ? place() : -1 - random.below(2))),
      ...list(mostColumns, () => random.below(bytes + 10)),
      ...list(mostColumns, () => 0),
      ...list(mostColumns, place),
      ...list(mostRows, place),
      ...list(mostRows, () => random.below(bytes + 10)),
      ...list(mostRows, () => random.below(2 ** 31)),
      ...list(mostRows, () => (random.chance(0.8) ? columns : random.below(columns + 2))),
      ...list(mostRows, () => random.below(random.chance(0.95) ? columns : 300)),
      ...list((mostRows * stride) / 4, () => random.below(2 ** 32) | 0),
    ]
    return [memoryId(), Int32Array.from(table)]
  }

  function rowArguments() {
    const [k, m] = [random.below(9), random.below(9)]
    const bytes = random.pick([0, 1, 33, 257])
    const stride = bytes + random.below(9)
    const rows = (count) => new Uint8Array(count > 0 ? (count - 1) * stride + bytes : 0)
    return [new Uint8Array(k * m).fill(3), rows(k), rows(m), k, m, bytes, stride]
  }

  function packetProductArguments() {
    const id = memoryId()
    const [k, m] = [1 + random.below(6), random.below(6)]
    const sources = packets(id)
    const blocks = Math.floor(sources.length / k)
    const list = new Int32Array(blocks * (k + m))
    for (let n = 0; n < blocks * k; n++) list[Math.floor(n / k) * (k + m) + (n % k)] = sources[n]
    const matrix = new Uint8Array(k * m).fill(random.below(256))
    return [
      id,
      matrix,
      list,
      blocks,
      k,
      m,
      random.pick([0, 0, 12, 60]),
      random.pick([0, 0, 64, 1400, 2048]),
      random.below(SLOTS + 2) - 1,
    ]
  }

  const window = () => random.pick([...windows, 0])
  const sequence = () => random.pick([0, 0, -20]) + random.below(random.pick([8, 40, 300]))

  /** Window, memory, place and bytes of a symbol with the length that it says it has, mostly. */
  function symbolArguments() {
    const id = memoryId()
    const bytes = 2 + random.pick([0, 1, 30, 1400])
    const at = random.below(SLOTS) * SLOT_BYTES
    const { data } = memories.get(id)
    data[at] = (bytes - 2) >> 8
    data[at + 1] = (bytes - 2) & 255
    if (random.chance(0.1)) data[at + random.below(2)] ^= 1
    return { id, at, bytes }
  }

  function keepArguments() {
    const first = sequence()
    const count = random.below(60)
    const { id, at, bytes } = symbolArguments()
    const sources = Array.from({ length: count }, (_, i) => [
      first + i,
      at,
      random.chance(0.99) ? bytes : random.below(3000),
    ])
    return [window(), id, Int32Array.from(sources.flat()), count]
  }

  function encodeArguments() {
    const [first, count, key, at] = [
      sequence(),
      1 + random.below(30),
      random.below(65_536),
      random.below(SLOTS) * SLOT_BYTES,
    ]
    made = [first, count, key, at, 2]
    const rest = random.below(8)
    const others = Array.from({ length: rest }, (_, i) => [first + i, count, key + i, at, SLOT_BYTES])
    const [id, , sources, added] = keepArguments()
    const repairs = Int32Array.of(...made.slice(0, 4), SLOT_BYTES, ...others.flat())
    return [id, memoryId(), sources, added, repairs, 0, 1 + rest]
  }

  function takeArguments() {
    const { id, at, bytes } = symbolArguments()
    const [first, count, key] = [sequence(), 1 + random.below(random.pick([3, 30])), random.below(65_536)]
    const [, , sources, added] = keepArguments()
    const repair = random.chance(0.5) ? made : [first, count, key, at, bytes]
    return [window(), id, sources, added, ...repair, ints(4097)]
  }

  function sourceArguments() {
    const { id, at, bytes } = symbolArguments()
    return [window(), id, sequence(), at, bytes]
  }

  /** Suite, key, nonce, associated data, text and tag of one message. */
  function bytesArguments() {
    const suite = random.below(3)
    const key = new Uint8Array(random.chance(0.9) ? (suite === 0 ? 16 : 32) : random.below(40))
    return [suite, key, new Uint8Array(12), new Uint8Array(random.below(70)), new Uint8Array(16 + random.below(2000))]
  }

  /** Arguments that are right, or nearly. */
  const right = {
    ownerRelease: () => [owners.length > 1 && random.chance(0.5) ? owners[1] : get('owner')],
    memoryOpen: () => {
      // New ones are for the garbage collector, old ones are quick.
      const memory = random.chance(0.3) ? packetMemory() : spare
      if (random.chance(0.5)) return [spoiled(random, memory, act)]
      whole.add(memory)
      return [memory]
    },
    memoryClose: () => [memories.size > 1 ? memoryId() : -1],
    giveBackPages: () => [new Uint8Array(random.below(20_000))],
    bytesToCacheLine: () => [new Uint8Array(100).subarray(random.below(101))],
    trimHeap: () => [],
    hasAddressSpace: () => [1 + random.below(2 ** 30), 0],
    readClock: () => [new Float64Array(random.below(3))],
    unixTime: () => [],
    usableCpus: () => [],
    eventOpen: () => [owner()],
    eventSignal: () => [get('event')],
    eventClear: () => [get('event')],
    pollerOpen: () => [owner()],
    pollerAdd: () => [get('poller'), get(random.pick(KINDS)), random.below(100)],
    pollerRemove: () => (watches.length > 0 ? [...random.pick(watches)] : [get('poller'), get(random.pick(KINDS))]),
    pollerWatchWrite: () =>
      watches.length > 0
        ? [...random.pick(watches), random.chance(0.5)]
        : [get('poller'), get(random.pick(KINDS)), random.chance(0.5)],
    pollerWait: () => [get('poller'), random.pick([0, 0, 1000, 100_000]), ints()],
    udpOpen: () => [owner(), random.chance(0.7) ? udpOptions() : spoiled(random, udpOptions(), act)],
    udpAddress: () => [get('udp')],
    udpTune: () => [get('udp'), 1 + random.below(1 << 24), random.below(256)],
    udpFollow: () => [get('udp')],
    udpLeavesBy: () => [get('udp')],
    udpDropped: () => [get('udp')],
    udpLeave: () => [get('udp'), 1 + random.below(4)],
    routesOpen: () => [owner()],
    routesClear: () => [get('routes')],
    interfaceIndex: () => [random.pick(['lo', '', 'nowhere', 'x'.repeat(15), 'x'.repeat(16)])],
    interfaceName: () => [random.below(4)],
    udpReceive: () => receiveArguments('udp'),
    udpSend: () => sendArguments('udp'),
    tunOpen: () => {
      const options = {
        kind: random.pick(['tun', 'tun', 'tap']),
        name: '',
        address: '10.64.0.1',
        prefix: 24,
        mtu: 1400,
      }
      const whole = { ...options, defaultRoute: false, offload: random.chance(0.7) }
      return [owner(), devices < devicesToOpen ? whole : spoiled(random, { ...whole, kind: 'neither' }, act)]
    },
    pollerWatchRead: () =>
      watches.length > 0
        ? [...random.pick(watches), random.chance(0.5)]
        : [get('poller'), get(random.pick(KINDS)), random.chance(0.5)],
    tcpListen: () => [
      owner(),
      maybeSpoiled({ address: random.pick(['127.0.0.1', '::1']), port: 0, framed: random.chance(0.6) }),
    ],
    tcpConnect: () => [
      owner(),
      maybeSpoiled({
        address: random.pick(['127.0.0.1', '127.0.0.1', '::1']),
        port: get('listening') & 0xffff || 9,
        framed: random.chance(0.4),
      }),
    ],
    tcpAddress: () => [get(random.pick(['listener', 'connection']))],
    unixListen: () => [owner(), maybeSpoiled({ name: unixName(), mtu: random.pick([1, 500, 65_535]) })],
    unixConnect: () => [
      owner(),
      maybeSpoiled({
        name: unixName(),
        mtu: random.pick([1, 500, 65_535]),
        ...(random.chance(0.3) && { bind: `@${process.pid}.own.${random.below(3)}` }),
      }),
    ],
    unixPeer: () => [get('connection')],
    listenerAccept: () => [owner(), get('listener')],
    connectionConnected: () => [get('connection')],
    connectionRemote: () => [get('connection'), new Uint8Array(random.pick([32, 32, 31, 40]))],
    connectionReset: () => [get('connection')],
    connectionReceive: () => receiveArguments('connection'),
    connectionSend: () => sendArguments('connection'),
    tunState: () => [get('tun')],
    tunKeep: () => [get('tun')],
    tunDropped: () => [get('tun')],
    tunReceive: () => receiveArguments('tun'),
    tunSend: () => sendArguments('tun'),
    close: () => [get(random.pick(KINDS))],
    closeOnExec: () => [],
    lockOpen: () => [owner(), `lock${random.below(4)}`],
    fileRequireShared: () => [`file${random.below(4)}`],
    fileReserve: () => [`file${random.below(4)}`, random.below(100_000)],
    // Each costs a descriptor for as long as the thread lives.
    watchHangup: () => [watched < 20 ? random.below(20) : -1, () => {}],
    hostAsk: () => ['127.0.0.1'],
    setAffinity: () => [random.chance(0.5) ? [] : [random.below(4)], random.chance(0.5)],
    gfUse: () => [random.pick([...native.gfKernels(), 'none', 'x'.repeat(100)])],
    gfMatrixMultiply: gfArguments,
    gfMultiplyRows: rowArguments,
    gfMultiplyPackets: productArguments,
    gfRandomPackets: randomPacketArguments,
    gfRecover: recoverArguments,
    gfRecoverRandom: recoverArguments,
    gfRandomMultiply: randomArguments,
    gfSolve: solveArguments,
    blocksPass: passArguments,
    blockFrame: () => {
      const id = memoryId()
      const list = packets(id)
      const [sources, stride, blocks] = [1 + random.below(8), random.below(10), 1 + random.below(5)]
      const at = random.pick([0, 0, stride, random.below(12)])
      const state = [
        ints(1)[0],
        ints(1)[0],
        ints(1)[0],
        random.below(sources),
        random.pick([14, 18, 200]),
        sources,
        at,
        stride,
        blocks,
        0,
        0,
        random.below(10),
        0,
      ]
      framed = { id, sources, stride, blocks, symbols: new Int32Array(at + blocks * stride + sources) }
      const copies = random.chance(0.5) ? [new Int32Array(random.chance(0.9) ? 255 : 9)] : []
      return [id, Int32Array.from(list), 0, list.length, Int32Array.from(state), framed.symbols, ...copies]
    },
    packetsCopy: () => {
      const id = memoryId()
      const list = packets(id)
      const from = random.below(list.length + 1)
      return [id, Int32Array.from(list), from, list.length, new Int32Array(list.length - from)]
    },
    blockHeaders: () => {
      const id = memoryId()
      const list = packets(id)
      const format = [
        0xb0 + random.below(4),
        0xb1,
        random.pick([12, 16, SLOT_BYTES]),
        random.below(600),
        random.below(2),
      ]
      received = { id, list: Int32Array.from(list) }
      return [id, received.list, list.length, Int32Array.from(format), new Int32Array(9 * list.length)]
    },
    xorAdd: () => {
      const count = random.below(20)
      const place = () => random.below(SLOTS * SLOT_BYTES)
      const steps = Array.from({ length: count }, () => [place(), random.below(1500), place(), random.below(1500)])
      return [
        memoryId(),
        Int32Array.from(steps.flat()),
        count,
        ...(random.chance(0.5) ? [random.pick([16, 32, 64])] : []),
      ]
    },
    slidingOpen: () => [
      64 << random.below(4),
      random.pick([2, 40, 1402, 1402]),
      ...(random.chance(0.5) ? [64 << random.below(3)] : []),
    ],
    slidingClose: () => [window()],
    slidingGrow: () => [window(), 64 << random.below(5)],
    slidingKeep: keepArguments,
    slidingEncode: encodeArguments,
    slidingTake: takeArguments,
    slidingResolve: () => [...sourceArguments(), ints(4097)],
    slidingRead: sourceArguments,
    slidingMatches: sourceArguments,
    slidingForget: () => [window(), sequence()],
    slidingDrop: () => [window(), sequence()],
    slidingReset: () => [window()],
    aeadUse: () => [random.pick(['auto', 'openssl', 'ipsec-mb', 'avx512', 'none', 'x'.repeat(100)])],
    aeadSealBytes: bytesArguments,
    aeadOpenBytes: bytesArguments,
    aeadOpen: () => [owner(), random.below(4), new Uint8Array(random.pick([16, 32, 32])), new Uint8Array(8)],
    aeadSeal: () => {
      const id = memoryId()
      const handles = packets(id, 20)
      const counter = Float64Array.of(random.below(1e6))
      return [get('aead'), id, handles, handles.length, counter, ints(20), random.chance(0.5)]
    },
    aeadOpenPackets: () => {
      const id = memoryId()
      const handles = packets(id, 20)
      return [get('aead'), id, handles, random.below(handles.length + 1), handles.length, new Uint8Array(20)]
    },
    chachaUse: () => [random.pick([...native.chachaKernels(), 'none', 'x'.repeat(100)])],
    chachaOpen: () => {
      const [key, nonce, constant] = [32, 12, 16].map((size) => new Uint8Array(random.chance(0.9) ? size : 8).fill(7))
      return [owner(), key, nonce, constant, random.chance(0.9) ? 8 + 2 * random.below(7) : random.below(30)]
    },
    chachaEncrypt: () => {
      const id = memoryId()
      const handles = packets(id, 20)
      const counter = Float64Array.of(random.chance(0.9) ? random.below(1e6) : 2 ** 53 - random.below(30))
      return [get('chacha'), id, handles, handles.length, new Uint8Array(8), counter, ints(20)]
    },
    chachaDecrypt: () => {
      const id = memoryId()
      const handles = packets(id, 20)
      return [get('chacha'), id, handles, handles.length, ints(20)]
    },
    crc32c: () => [memoryId(), random.below(SLOTS * SLOT_BYTES), random.below(5000)],
    onesSumOf: () => {
      const bytes = new Uint8Array(random.below(2000))
      return [bytes, 1 + random.below(64), new Uint8Array(random.below(2) * bytes.length)]
    },
  }
  const names = Object.keys(native)
  // What carries packets is called more often, what closes things less.
  const often = names.flatMap((name) =>
    Array(
      /Send|Receive|Seal|Packets|Encrypt|Decrypt|sliding(Keep|Encode|Take|Resolve)|poller(Add|Wait)|udpAddress|listenerAccept/.test(
        name,
      )
        ? 6
        : /^(ownerOpen|ownerRelease|memoryOpen|memoryClose|close|tunOpen|slidingOpen|slidingClose|slidingReset)$/.test(
              name,
            )
          ? 1
          : 2,
    ).fill(name),
  )

  /** What a value does that is looked at: another call, or nothing. */
  function act() {
    if (depth < 2 && random.chance(0.5)) call(random.pick(often))
    if (random.chance(0.01)) globalThis.gc?.()
  }

  function call(name) {
    const given = right[name]?.() ?? []
    const wrong = random.chance(0.25)
    if (wrong) {
      for (let times = random.below(2) + 1; times > 0; times--) {
        const index = random.below(given.length + 1)
        const value = given[index]
        const array = ArrayBuffer.isView(value) && !(value instanceof DataView) && random.chance(0.6)
        given[index] = array ? typedArray(random, value.constructor) : hostile(random, act)
        if (typeof value === 'number' && random.chance(0.6)) given[index] = number(random)
      }
      if (random.chance(0.1)) given.length = random.below(given.length + 1)
      // Nobody would wake it, and no device of this machine may be configured.
      if (name === 'pollerWait' && typeof given[1] === 'number' && !(given[1] <= 1e6 && given[1] >= 0)) given[1] = 0
      // What it throws would be the callback's own fault.
      if (name === 'watchHangup' && typeof given[1] === 'function') given[1] = () => {}
      if (name === 'tunOpen') given[1] = spoiled(random, { kind: 'neither' }, act)
      // No name server is to be asked for what nobody has.
      if (name === 'hostAsk' && typeof given[0] === 'string') given[0] = '127.0.0.1'
    }
    const told = `${thread}: ${name}(${given.map(describe).join(', ')})`
    writeSync(note, told.slice(0, 255).padEnd(255).concat('\n'), thread * 256)
    summary[name][0]++
    depth++
    try {
      const result = native[name](...given)
      summary[name][1]++
      keep(name, result, given)
    } catch (error) {
      if (!(error instanceof Error)) throw new Error(`${told} threw ${String(error)}`)
      if (typeof error.message !== 'string' || error.message === '') throw new Error(`${told} threw without a message`)
    } finally {
      depth--
    }
  }

  /** Other calls, of any thread, get to use what this one opened. */
  function keep(name, result, given) {
    const kind = OPENING[name] ?? KINDS.find((one) => name === `${one}Open`)
    // Not every accept gives a connection.
    if (kind !== undefined && result > 0) {
      const replaced = put(kind, result)
      try {
        native.close(replaced)
      } catch {} // there was none, or it is closed
    }
    if (name === 'pollerAdd') watches.push([given[0], given[1]])
    if (watches.length > 5) watches.shift()
    if (name === 'tunOpen') devices++
    if (name === 'watchHangup' && result) watched++
    if (name === 'hostAsk') closeSync(result)
    if (name === 'udpAddress') put('port', result.port)
    if (name === 'tcpAddress') put('listening', result.port)
    if (name === 'ownerOpen') {
      owners.push(result)
      put('owner', result)
      if (owners.length > 4) native.ownerRelease(owners.splice(1, 1)[0])
    }
    if (name === 'memoryOpen') {
      memories.set(result, whole.has(given[0]) ? given[0] : packetMemory())
      if (memories.size > 5) {
        const id = [...memories.keys()][random.below(4) + 1]
        memories.delete(id)
        native.memoryClose(id)
      }
    }
    if (name === 'slidingOpen') windows.push(result)
    if (windows.length > 3) native.slidingClose(windows.shift())
    if (name === 'slidingClose') windows.splice(windows.indexOf(given[0]), 1)
    if (name === 'slidingEncode' && given[4]?.length > 4) made[4] = given[4][4]
    if (name === 'memoryClose') {
      memories.delete(given[0])
      if (memories.size === 0) memories.set(openShared(world.memory), world.memory)
    }
  }

  /** Waits whose end is far away, on a poller that is ready: nobody else may close what makes it so. */
  function longWait() {
    const own = native.ownerOpen()
    const [event, poller] = [native.eventOpen(own), native.pollerOpen(own)]
    native.pollerAdd(poller, event, 1)
    native.eventSignal(event)
    const forever = [-1, -0.5, 1e18, 9e18, 2 ** 63, 1e300, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    if (native.pollerWait(poller, random.pick(forever), ints(1)) !== 1) throw new Error('a ready poller was not ready')
    native.ownerRelease(own)
  }

  /** Numbers that no right program would write there; what uses them must say so. */
  function damage() {
    const memory = memories.get(memoryId())
    if (random.chance(0.5)) return mend(memory)
    const array = random.pick([
      memory.offset,
      memory.length,
      memory.free,
      memory.train,
      memory.trainReferences,
      memory.trainFree,
    ])
    const value = random.chance(0.5)
      ? random.int32()
      : random.pick([-(2 ** 31), 2 ** 31 - 1, -1, 0, 1, SLOTS, SLOTS + 1])
    array[random.below(array.length)] = value
  }

  /** A forged number may have released the owner that was to last. */
  function renewOwner() {
    try {
      native.close(native.eventOpen(owners[0]))
    } catch {
      owners[0] = native.ownerOpen()
    }
  }

  const end = performance.now() + seconds * 1000
  for (let i = 0; i < count && performance.now() < end; i++) {
    if (i % 20 === 0) damage()
    if (alone && i % 200 === 0) longWait()
    if (i % 50 === 0) mend(world.memory)
    if (i % 50 === 0) renewOwner()
    call(random.pick(often))
  }
  for (const one of owners) native.ownerRelease(one)
  parentPort.postMessage(summary)
}

/** A value in a few words. */
function describe(value) {
  if (ArrayBuffer.isView(value)) return `${value.constructor.name}[${value.length ?? value.byteLength}]`
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 20))
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? '[…]' : '{…}'
  return typeof value === 'function' ? 'function' : String(value)
}
