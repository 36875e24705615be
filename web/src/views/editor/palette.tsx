/** All kinds of components by family: dragged onto the canvas, or added by Enter or a click. */
import { useMemo, useState } from 'react'
import { type Catalogue, type Kind, kindsOf } from '../../data/schema.ts'

/** What a dragged kind is carried as. */
export const KIND_TYPE = 'application/x-penstock-component'

const FAMILIES: Readonly<Record<string, string>> = {
  sources: 'Sources and sink',
  endpoints: 'Network endpoints',
  emulation: 'Emulation',
  fec: 'Error correction',
  crypto: 'Encryption',
  routing: 'Routing',
  trackers: 'Trackers',
  multipath: 'Multi-path',
}

interface Props {
  readonly catalogue: Catalogue
  readonly onAdd: (key: string) => void
}

export function Palette({ catalogue, onAdd }: Props) {
  const [search, setSearch] = useState('')
  const families = useMemo(() => familiesOf(catalogue, search), [catalogue, search])
  const shown = families.flatMap(([, kinds]) => kinds)
  const first = shown.find(({ key }) => wordsOf(search).every((word) => key.includes(word))) ?? shown[0]
  return (
    <section className="palette" aria-label="Components to add">
      <input
        type="search"
        placeholder="Search components"
        aria-label="Search components"
        value={search}
        onChange={({ target }) => setSearch(target.value)}
        onKeyDown={({ key }) => {
          if (key === 'Enter' && search !== '' && first !== undefined) onAdd(first.key)
        }}
      />
      <div className="kinds">
        {families.map(([family, kinds]) => (
          <div key={family} className={`family family-${family}`}>
            <h2>{FAMILIES[family] ?? family}</h2>
            {kinds.map((kind) => (
              <button
                key={kind.key}
                type="button"
                draggable
                title={kind.summary}
                onDragStart={({ dataTransfer }) => dataTransfer.setData(KIND_TYPE, kind.key)}
                onClick={() => onAdd(kind.key)}
              >
                <strong>{kind.key}</strong>
                <span>{kind.summary}</span>
              </button>
            ))}
          </div>
        ))}
        {families.length === 0 && <p className="quiet">No component has that in its name or summary.</p>}
      </div>
    </section>
  )
}

const wordsOf = (search: string): readonly string[] => search.toLowerCase().split(/[\s_]+/)

function familiesOf(catalogue: Catalogue, search: string): readonly (readonly [string, readonly Kind[]])[] {
  const words = wordsOf(search)
  const found = kindsOf(catalogue).filter(({ key, summary, family }) => {
    const text = `${key.replaceAll('_', ' ')} ${summary} ${family}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
  const order = Object.keys(FAMILIES)
  const families = [...new Set(found.map(({ family }) => family))].sort((a, b) => order.indexOf(a) - order.indexOf(b))
  return families.map((family) => [family, found.filter((kind) => kind.family === family)] as const)
}
