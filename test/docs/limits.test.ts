/** docs/limits.md against the sources: every constant has the value that the page says, and every limit is on the page. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'

const page = readFileSync(join(packageRoot(), 'docs/limits.md'), 'utf8')
const sources = new Map(
  readdirSync(join(packageRoot(), 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|cc|h)$/.test(file) && !file.endsWith('.test.ts'))
    .map((file) => [`src/${file}`, readFileSync(join(packageRoot(), 'src', file), 'utf8')]),
)

/** The expression of a constant in a file. */
function expression(file: string, name: string): string | undefined {
  const found = new RegExp(`^(?:export |static )*(?:const|constexpr [\\w:]+) ${name}(?:: number)? = ([^;\\n]+)`, 'm')
  return found.exec(sources.get(file) ?? '')?.[1]?.replace(/\s*\/\/.*$/, '')
}

/** The file that a name in `file` comes from: itself, or what it imports the name from. */
function originOf(file: string, name: string): string | undefined {
  if (expression(file, name) !== undefined) return file
  const imported = new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from '([^']+)'`).exec(sources.get(file) ?? '')?.[1]
  return imported === undefined ? undefined : posix.join(posix.dirname(file), imported)
}

/** Its value, with the values of other constants in it. Undefined: it is no number. */
function numberOf(file: string, name: string): number | undefined {
  let text = expression(file, name)
  if (text === undefined) return undefined
  for (const [other] of text.matchAll(/\b[A-Za-z]\w*/g)) {
    const at = originOf(file, other)
    const value = at === undefined || other === name ? undefined : numberOf(at, other)
    if (value === undefined) return undefined
    text = text.replace(new RegExp(`\\b${other}\\b`), `(${value})`)
  }
  text = text.replaceAll(/(?<=[\da-f])(_(?=[\da-f])|u(ll)?\b)/g, '')
  return /^[\d\s.x+\-*/()<a-fA-F]+$/.test(text) ? (Function(`return ${text}`)() as number) : undefined
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  Ki: 1024,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  ns: 1,
  ms: 1,
  s: 1000,
  min: 60_000,
  d: 86_400_000,
}

/** What a cell says: bytes, milliseconds (nanoseconds where it says ns), a number. */
function told(cell: string): number {
  const [, number = '', unit = ''] = /^([\d,.]+) ?(\w*)$/.exec(cell) ?? []
  const factor = UNITS[unit]
  if (number === '' || factor === undefined) throw new Error(`"${cell}" is no value with a unit this test knows`)
  return Number(number.replaceAll(',', '')) * factor
}

const rows = page
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .flatMap(([, what = '', value = '', constant = '']) => {
    const [, name, file] = /^\[(\w+)\]\(\.\.\/(src\/[^)]+)\)$/.exec(constant) ?? []
    return name === undefined || file === undefined ? [] : [{ what, value, name, file }]
  })

describe('every constant has the value that the page says', () => {
  test.each(rows.map((row) => [row.name, row.file, row] as const))('%s in %s', (name, file, { value }) => {
    const known = numberOf(file, name)
    expect(known, 'the constant').toBeTypeOf('number')
    // One constant is in seconds.
    const seconds = name === 'DEFAULT_INSTRUCTIONS_TIMEOUT' ? 1000 : 1
    expect((known as number) * seconds).toBe(told(value))
  })
})

/** Numbers that bound nothing: what bytes mean, where they stand, how a format or an algorithm has it. */
const NO_LIMITS = new Set(
  `SECTION_HEADER INTERFACE_DESCRIPTION ENHANCED_PACKET BYTE_ORDER_MAGIC OPTION_NAME OPTION_RESOLUTION OPTION_APPLICATION
  NANOSECONDS SHOWN_BYTES WRITTEN MDB_PANIC READ DROPPED WRITERS HEADER_WORDS RECORD_BYTES WRAP METRICS_FILE_HEADER_BYTES RESERVED_BYTES SEQUENCE_AT STATE_AT TIME_AT READY MESSAGE TAKEN REFUSED VARINT FIXED64 LENGTH FIXED32 KEY_BYTES HASH_BYTES SIGNATURE_BYTES PUBLIC_KEY_BYTES SECRET_KEY_BYTES SEED_OFFSET VERSION NEWEST_VERSION
  NS_PER_MS NS_PER_S COMMAND_STOP COMMAND_MESSAGE COMMAND_GO COMMAND_TOKEN MAGIC HEADER_BYTES REMOTE_BYTES ORDINAL_BYTE REMOTE_WORDS STREAM_WORD TABLES_BYTES CACHE_LINE_BYTES
  POLYNOMIAL WAYS KEY_WORDS SALT_BYTES AEAD_HEADER_BYTES TAG_BYTES SEALED_BYTES FORGED UNTRIED SYMBOL_AT
  SOURCE_PACKET BEGINS_RUN RUN_WORDS BLOCK_HEADER_BYTES LENGTH_BYTES KIND_SOURCE KIND_REPAIR UNSEEN SEEN RECOVERED UNKNOWN OPEN DONE UNHEARD CONTRADICTORY
  CONSTANT_BYTES CHACHA_HEADER_BYTES CHACHA_KEY_BYTES CHACHA_ROUNDS MIN_ROUNDS PREFIX_BYTES
  LATE UNDRAWN DEFAULT_MIN DEFAULT_MAX DEFAULT_PORT LEAST_BYTES MASK PROBE_BYTES PROBE_MAGIC SOURCE SEQUENCE_HIGH SEQUENCE_LOW SECONDS
  NANOSECONDS TWO_32 MANY SEQUENCE_HIGH_LIMIT WINDOW_STEP SHORT MAX_LENGTH FLUSH_ENTRY RESET_ENTRY FIRST_CAPACITY
  BUSY_BREATH_NS FIRST_EPHEMERAL_PORT SUB OCTAVES HISTOGRAM_BUCKETS CRC COMPACT_AT REFLECTED CONTRADICTED NO_SLOT UNFOLLOWED
  PLACES WINDOW_PLACES WINDOW_SYMBOLS WINDOW_WORDS PASS_WORDS REPLACED SPENT PASSING MESSAGE_TAG STREAM_TAG PAYLOAD_TAG MORE_TAG
  MULTICAST_TTL ASKED_PART LOSS_HEADER_BYTES LATENCY_HEADER_BYTES ECHO_AT HOLD_AT RTP_BYTES RTP_VERSION EXTENSION_BIT FIRST_RTCP LAST_RTCP
  TELLING_PARTS TELLING_API_PARTS YOUNG_GENERATION_MB WORD_BITS STATUS_BYTES MAX_MAKERS KNOWN SEQUENCES UDP_BYTES AWAITED ARRIVED LOST
  WORDS REPEATED_REPORTS TO_BEGIN_ANEW STARTUP_GAIN GROWTH ROUNDS_TO_BE_FULL ROUNDS WINDOW_GAIN FIRST_WINDOW FIRST_RATE BURST_NS MIN_BURST
  MIN_REPORT_NS MIN_SILENCE_NS GRACE_NS LOSS_WEIGHT PROBE_NS IDLE_PROBE_NS PROBES_TO_LEAVE MIN_TAIL_NS PARTS PART_NS FALLS_TO_BELIEVE
  REPORT_CARRIERS LATER_REPORTED FLYING REPORTED KIND_DATA KIND_REPORT KIND_PROBE KIND_ANSWER SYMBOL_HEADER_BYTES DATA_HEADER_BYTES
  REPORT_HEADER_BYTES FLAG_PROTECTED FLAG_AGAIN PIECE_FIRST PIECE_LAST TOKENS MIN_LOSS DEVIATIONS MISSING HERE DELIVERED GIVEN_UP
  FIRST_RTT_NS LEAST_NS MIN_BEHIND DEFAULT_PACKET_BYTES DEFAULT_TIMEOUT_MS REPAIR_WINDOW RTT_WEIGHT MANY_UNREPORTED
  FIRST_DECODER_WINDOW DOUBT_NS STARTUP_WINDOW_GAIN MARGIN_NS MIN_SPAN_NS QUEUE_GROWTH UP_GROWTH FULL_WEIGHT CRUISE_WHILES MIN_LOAD PATH_LOSS_WEIGHT CHANCE_TO_LEAVE ROUNDS_OF_A_LOSS
  STANDING_QUEUE_NS STANDING_NS REPORTS_TO_WAIT POINTS POINTS_OF_A_WHILE
  MIN_QUEUE_NS PIECES_FACTOR STREAM_FACTOR CHECK_MASK
  TCP UDP HOP_BY_HOP ROUTING FRAGMENT AUTHENTICATION DESTINATION_OPTIONS MOBILITY HOST_IDENTITY SHIM6 IPV4_BYTES
  IPV6_BYTES WORD_BYTES SESSION_BYTES FRAGMENT_BYTES NONE SEEN_WORDS FRAME_BYTES STREAM_PIECE_BYTES IN_FLIGHT_BYTES
  LINE_FEED LINK_NULL LINK_ETHERNET LINK_RAW LINK_SLL LINK_IPV4 LINK_IPV6 LINK_SLL2 NO_IP TOO_SHORT ETHERTYPE_IPV4 ETHERTYPE_IPV6
  ETHERNET_TYPE_AT ETHERNET_BYTES SLL_TYPE_AT SLL_BYTES SLL2_BYTES NULL_BYTES VLAN_BYTES FAMILY_IPV4 RECORD_BYTES
  SECTION_HEADER INTERFACE_DESCRIPTION SIMPLE_PACKET ENHANCED_PACKET BYTE_ORDER_MAGIC BYTE_ORDER_SWAPPED OPTION_END
  OPTION_TIME_RESOLUTION OPTION_TIME_OFFSET BLOCK_BYTES SECTION_BYTES INTERFACE_BYTES SIMPLE_BYTES
  ENHANCED_BYTES
  LOCK HEAD TAIL IDLE CLOSED FULL OVERSIZE MTU HEADER_WORDS
  RUN_SESSION RUN_BLOCK RUN_PACKETS RUN_SOURCES RUN_WANTED RUN_LONGEST RUN_REPAIR_BYTES ONE_BY_ONE GOES_ON STOPPED COMPLETE
  PACKETS SOURCES WANTED BASE REPLACES RUN FIRST_WORD SENDER BLOCK INDEX FRONT AT STRIDE BLOCKS PREVIOUS NO_ROOM LAST COPIED
  TOLD SEED_BYTES NO_MORE WHOLE MOST_COLUMNS MOST_ROWS COLUMNS ROWS ROOM BYTES
  PARITY_SYMBOL_AT PARITY_HEADER_BYTES GRID_SOURCE ROW_PARITY COLUMN_PARITY NOT_ONE ABSENT ROW FIRST_COLUMN
  FIRST SECOND TEMPER SOURCE_WORDS REPAIR_WORDS HISTORY MIN_PLACES PENDING NEW DUPLICATE MENDED WRONGLY_MENDED FAR_AHEAD FOLLOWED UNDONE ELSEWHERE USED REDUNDANT UNUSABLE CAME
  REPAIR SOURCE_SYMBOL_AT SOURCE_HEADER_BYTES REPAIR_SYMBOL_AT REPAIR_HEADER_BYTES MAX_PAYLOAD ROUNDING FIRST_WINDOW LAYOUT REPLICAS_NEED_A_CLUSTER GAUGE_NS`.split(
    /\s+/,
  ),
)

test('every limit of the sources is on the page', () => {
  const listed = new Set(rows.map(({ name, file }) => `${name} in ${file}`))
  const missing: string[] = []
  for (const [file, text] of sources) {
    // The commands' own are on the page as far as users meet them.
    if (!file.endsWith('.ts') || file.startsWith('src/cli/')) continue
    for (const [, name = ''] of text.matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]+)(?:: number)? = /gm)) {
      const isLimit = !NO_LIMITS.has(name) && numberOf(file, name) !== undefined
      if (isLimit && !listed.has(`${name} in ${file}`)) missing.push(`${name} in ${file}`)
    }
  }
  expect(missing, 'add them to docs/limits.md, or to NO_LIMITS here when they bound nothing').toEqual([])
})
