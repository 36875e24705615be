/** The lines of a log: only those that can be seen are in the page. */
import type { LogMessage } from '@penstock/client'
import { useEffect, useRef, useState } from 'react'
import { linesInView } from './log-window.ts'

/** Pixels; as the style sheet has it. */
const ROW = 24

type NumberedLine = LogMessage & { readonly number: number }

interface Props {
  readonly lines: readonly NumberedLine[]
  /** What the lines were chosen from: where it is the same, others of its lines are shown. */
  readonly source: readonly LogMessage[]
  readonly isFollowing: boolean
  /** Somebody scrolls up to read. */
  readonly onScrollUp: () => void
  /** Somebody who has scrolled up is at the end again. */
  readonly onScrollToEnd: () => void
}

export function LogLines({ lines, source, isFollowing, onScrollUp, onScrollToEnd }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 480 })
  const [open, setOpen] = useState<NumberedLine>()
  const opener = useRef<HTMLButtonElement>(null)
  /** What was read last: the lines, and where the reader has scrolled to. */
  const read = useRef<{ lines: readonly NumberedLine[]; source: readonly LogMessage[]; top: number }>(undefined)
  /** Where the page has scrolled to by itself, which is not told as the reader's doing. */
  const own = useRef<number>(undefined)
  useEffect(() => {
    // Older lines are on their way.
    if (host.current === null || (!isFollowing && source.length === 0)) return
    const before = read.current ?? { lines, source, top: 0 }
    const top = isFollowing ? host.current.scrollHeight : topOf(lines, source, before)
    host.current.scrollTop = top
    own.current = host.current.scrollTop
    // Held, the place that is read is found again, however few lines a filter leaves for a while.
    if (isFollowing || source !== before.source) read.current = { lines, source, top: own.current }
  }, [lines, source, isFollowing])
  const close = (): void => {
    setOpen(undefined)
    // The line may be out of sight, and then is not in the page.
    const back = opener.current?.isConnected === true ? opener.current : host.current
    back?.focus()
  }
  const { from, to } = linesInView(lines.length, view, ROW)
  return (
    <>
      <section
        className="card log-lines"
        aria-label="Lines"
        ref={host}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          const isAtEnd = scrollHeight - scrollTop - clientHeight <= ROW
          const isOwn = scrollTop === own.current
          own.current = undefined
          if (!isOwn && lines.length > 0) {
            read.current = { lines, source, top: scrollTop }
            if (isFollowing && scrollTop < view.top && !isAtEnd) onScrollUp()
            if (!isFollowing && scrollTop > view.top && isAtEnd) onScrollToEnd()
          }
          setView({ top: scrollTop, height: clientHeight })
        }}
      >
        <div style={{ height: lines.length * ROW }}>
          <ol style={{ transform: `translateY(${from * ROW}px)` }}>
            {lines.slice(from, to).map((line) => (
              <li key={line.number} className={`level-${String(line.level).toLowerCase()}`}>
                <button
                  type="button"
                  aria-expanded={open?.number === line.number}
                  onClick={({ currentTarget }) => {
                    opener.current = currentTarget
                    setOpen(line)
                  }}
                >
                  <time dateTime={line.timestamp}>{clock(line.timestamp)}</time>
                  <b>{line.level}</b>
                  {line.component !== '' && <i>{line.component}</i>}
                  <span>{line.message}</span>
                  {fieldsText(line) !== '' && <small>{fieldsText(line)}</small>}
                </button>
              </li>
            ))}
          </ol>
        </div>
        {lines.length === 0 && <p className="quiet small">No line to show.</p>}
      </section>
      {open !== undefined && <WholeLine line={open} onClose={close} />}
    </>
  )
}

/** Where the line that was read at the top is now, in pixels. */
function topOf(
  lines: readonly NumberedLine[],
  source: readonly LogMessage[],
  before: { readonly lines: readonly NumberedLine[]; readonly source: readonly LogMessage[]; readonly top: number },
): number {
  // Older ones come above what is read, and all are numbered anew.
  if (source !== before.source) return before.top + Math.max(0, lines.length - before.lines.length) * ROW
  const row = Math.floor(before.top / ROW)
  const number = before.lines[row]?.number ?? 0
  const now = lines.findIndex((line) => line.number >= number)
  return (now < 0 ? lines.length : now) * ROW + (before.top - row * ROW)
}

function WholeLine({ line, onClose }: { readonly line: NumberedLine; readonly onClose: () => void }) {
  return (
    <section className="card whole-line" aria-label="The line">
      <button type="button" className="button plain icon" aria-label="Close" onClick={onClose}>
        ×
      </button>
      <p className="quiet small">
        {line.timestamp} {line.level} {line.component}
      </p>
      <p>{line.message}</p>
      <dl className="pairs">
        {Object.entries(line.fields).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

/** Hours to milliseconds, of the reader's own clock. */
function clock(timestamp: string | undefined): string {
  if (timestamp === undefined) return ''
  const at = new Date(timestamp)
  const two = (value: number): string => String(value).padStart(2, '0')
  const ms = String(at.getMilliseconds()).padStart(3, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`
}

function fieldsText({ fields }: LogMessage): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}
