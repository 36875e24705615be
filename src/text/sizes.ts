/** Sizes as they are written in settings: `65536`, `512KiB`, `4MiB`. */

const BYTES: Readonly<Record<string, number>> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }

/** The bytes of a size; undefined when the text is none. */
export function readSize(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)(KiB|MiB|GiB)?$/.exec(text) ?? []
  return amount === undefined ? undefined : Number(amount) * (BYTES[unit] as number)
}

/** Bytes in the largest unit in which they are whole: `4MiB`, `1536KiB`. */
export function writeSize(bytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB']) {
    const size = BYTES[unit] as number
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`
  }
  return String(bytes)
}
