/** The lines of a log: only those that can be seen are in the page. */
import type { LogMessage } from '@penstock/client'
import { useEffect, useRef, useState } from 'react'
import { linesInView } from './log-window.ts'

/** Pixels; as the style sheet has it. */
const ROW = 24

type NumberedLine = LogMessage & { readonly number: number }

interface Props {
  readonly lines: readonly NumberedLine[]
  readonly isFollowing: boolean
  /** Somebody scrolls up to read. */
  readonly onScrollUp: () => void
  /** Somebody who has scrolled up is at the end again. */
  readonly onScrollToEnd: () => void
}

export function LogLines({ lines, isFollowing, onScrollUp, onScrollToEnd }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 480 })
  const [open, setOpen] = useState<NumberedLine>()
  const count = useRef(lines.length)
  useEffect(() => {
    if (host.current === null) return
    // It goes to the end when lines come; older ones come above what is read.
    if (isFollowing) host.current.scrollTop = host.current.scrollHeight
    else host.current.scrollTop += Math.max(0, lines.length - count.current) * ROW
    count.current = lines.length
  }, [lines, isFollowing])
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
          if (isFollowing && scrollTop < view.top && !isAtEnd) onScrollUp()
          if (!isFollowing && scrollTop > view.top && isAtEnd) onScrollToEnd()
          setView({ top: scrollTop, height: clientHeight })
        }}
      >
        <div style={{ height: lines.length * ROW }}>
          <ol style={{ transform: `translateY(${from * ROW}px)` }}>
            {lines.slice(from, to).map((line) => (
              <li key={line.number} className={`level-${line.level.toLowerCase()}`}>
                <button type="button" aria-expanded={open?.number === line.number} onClick={() => setOpen(line)}>
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
      {open !== undefined && <WholeLine line={open} onClose={() => setOpen(undefined)} />}
    </>
  )
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
