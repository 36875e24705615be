/** What can be done with a configuration's text as a whole: format, copy, download, upload. */
import { PenstockError } from '@penstock/client'
import { type ChangeEvent, useRef } from 'react'
import { readJson } from '../../data/json.ts'
import { tell, tellFailure } from '../../parts/toasts.tsx'

/** Bytes of a file that is read: a node takes no request that is larger, and the page would be long over it. */
const MAX_FILE = 4 * 1024 * 1024

interface Props {
  readonly text: string
  /** Of the file that is downloaded, without its ending. */
  readonly name: string
  readonly onChange: (text: string) => void
}

export function TextTools({ text, name, onChange }: Props) {
  const format = (): void => {
    try {
      onChange(formatted(readJson(text)))
    } catch (error) {
      tellFailure('The text was not formatted', error)
    }
  }
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      tell('The configuration is copied')
    } catch (error) {
      tellFailure('The browser does not let this page copy; use Download', error)
    }
  }
  return (
    <>
      <button type="button" className="button small" onClick={format}>
        Format
      </button>
      <button type="button" className="button small" onClick={copy}>
        Copy
      </button>
      <FileTools text={text} name={name} onChange={onChange} />
    </>
  )
}

/** Import from a file, and export into one. */
export function FileTools({ text, name, onChange }: Props) {
  const file = useRef<HTMLInputElement>(null)
  const upload = async ({ target }: ChangeEvent<HTMLInputElement>): Promise<void> => {
    const [chosen] = target.files ?? []
    if (chosen === undefined) return
    try {
      if (chosen.size > MAX_FILE)
        throw new PenstockError('OUT_OF_RANGE', 'it has more than the 4 MiB that a node takes')
      onChange(await chosen.text())
    } catch (error) {
      tellFailure(`${chosen.name} was not read`, error)
    }
    target.value = ''
  }
  return (
    <>
      <button type="button" className="button small" onClick={() => download(`${name || 'pipeline'}.json`, text)}>
        Download
      </button>
      <button type="button" className="button small" onClick={() => file.current?.click()}>
        Upload
      </button>
      <input
        ref={file}
        type="file"
        accept=".json,application/json"
        aria-label="Configuration file"
        hidden
        onChange={upload}
      />
    </>
  )
}

/** The text of a configuration, two spaces a level. */
export function formatted(config: unknown): string {
  return `${JSON.stringify(config, null, 2)}\n`
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  URL.revokeObjectURL(url)
}
