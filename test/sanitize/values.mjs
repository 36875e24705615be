/** What the fuzzer passes to the addon: a seeded choice of values that are wrong, or that change while they are looked at. */

/** Mulberry32: the same seed, the same choices. */
export class Random {
  #state
  constructor(seed) {
    this.#state = seed >>> 0
  }
  float() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  /** A whole number in [0, end). */
  below(end) {
    return Math.floor(this.float() * end)
  }
  chance(probability) {
    return this.float() < probability
  }
  pick(list) {
    return list[this.below(list.length)]
  }
  int32() {
    return this.below(4294967296) | 0
  }
}

const NUMBERS = [
  ...[0, -0, 1, -1, 2, 3, 7, 63, 64, 65, 255, 256, 257, 1023, 1500, 4095, 4096, 4097, 8191, 8192, 16383, 16384, 16385],
  ...[
    65535,
    65536,
    2 ** 31 - 1,
    2 ** 31,
    -(2 ** 31),
    -(2 ** 31) - 1,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 53 - 1,
    2 ** 53,
    2 ** 63,
  ],
  ...[
    -(2 ** 63),
    2 ** 64,
    1e300,
    -1e300,
    1e-300,
    0.5,
    -0.5,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ],
]
const ARRAYS = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
]

/** Numbers at the edges of types, limits and handles. */
export function number(random) {
  return random.chance(0.7) ? random.pick(NUMBERS) : random.chance(0.5) ? random.int32() : (random.float() - 0.5) * 1e20
}

/** A typed array of any type, over memory of any kind: short, empty, odd, shared, detached, resized under its length. */
export function typedArray(random, Type = random.pick(ARRAYS)) {
  const size = Type.BYTES_PER_ELEMENT
  const length = random.pick([0, 0, 1, 2, 5, 6, 8, 9, 16, 64, 300])
  switch (random.below(7)) {
    case 0:
      return new Type(new SharedArrayBuffer(length * size))
    case 1: {
      const array = new Type(length)
      structuredClone(array.buffer, { transfer: [array.buffer] })
      return array
    }
    case 2: {
      const buffer = new ArrayBuffer(length * size + 64, { maxByteLength: length * size + 128 })
      const array = random.chance(0.5) ? new Type(buffer, 8, length) : new Type(buffer)
      buffer.resize(random.pick([0, 8, length * size + 128]))
      return array
    }
    case 3:
      return new Type(new ArrayBuffer(length * size + 80), 16, length)
    case 4: {
      const buffer = new SharedArrayBuffer(length * size, { maxByteLength: length * size + 4096 })
      const array = new Type(buffer)
      if (random.chance(0.5)) buffer.grow(length * size + 4096)
      return array
    }
    default:
      return new Type(length)
  }
}

/** Any value at all; `act` is called by those that do something when they are looked at. */
export function hostile(random, act) {
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
      return number(random)
    case 3:
    case 4:
      return typedArray(random)
    case 5:
      return random.pick([
        undefined,
        null,
        true,
        false,
        '',
        'x',
        '\0',
        'ein Wort',
        '0'.repeat(100_000),
        '\ud800',
        1n,
        2n ** 70n,
      ])
    case 6:
      return random.pick([Symbol('s'), () => act(), class {}, new Date(), /x/, new Map(), new Error('e'), globalThis])
    case 7:
      return random.pick([
        [],
        [0],
        [1, 2, 3],
        new Array(5),
        Object.freeze([0]),
        Array.from({ length: 300 }, () => number(random)),
      ])
    case 8:
      return new DataView(new ArrayBuffer(random.below(20)))
    case 9:
      return random.chance(0.5) ? new ArrayBuffer(8) : new SharedArrayBuffer(8)
    case 10:
      return new Proxy(random.pick([{}, [], [0], new Int32Array(8), () => 0]), {
        get(target, name) {
          act()
          return random.chance(0.5) ? Reflect.get(target, name) : number(random)
        },
      })
    case 11: {
      const list = [0, 0, 0]
      Object.defineProperty(list, 1, {
        get() {
          act()
          list.length = random.below(5)
          return number(random)
        },
      })
      return list
    }
    case 12:
      return {
        valueOf() {
          act()
          return 1
        },
        toString() {
          act()
          return 'x'
        },
      }
    default:
      return { backend: number(random), family: number(random), mtu: number(random), kind: 'tun', name: number(random) }
  }
}

/** `object` with some of its properties wrong, missing, or read through a getter that acts, lies the second time, or throws. */
export function spoiled(random, object, act) {
  const copy = { ...object }
  for (let times = random.below(3) + 1; times > 0; times--) {
    const name = random.pick(Object.keys(object))
    const value = object[name]
    delete copy[name]
    switch (random.below(5)) {
      case 0:
        break
      case 1:
        copy[name] = hostile(random, act)
        break
      case 2:
        copy[name] = ArrayBuffer.isView(value) ? typedArray(random, value.constructor) : number(random)
        break
      default: {
        const throws = random.chance(0.2)
        const lies = random.chance(0.5)
        let reads = 0
        Object.defineProperty(copy, name, {
          configurable: true,
          enumerable: true,
          get() {
            act()
            if (throws) throw new RangeError('told to throw')
            return lies && reads++ > 0 ? hostile(random, () => {}) : value
          },
        })
      }
    }
  }
  return copy
}
