/** A name that must be taken: it counts once the field is left or Enter is pressed, and says why where it cannot be had. */
import { useEffect, useState } from 'react'

interface Props {
  readonly label: string
  readonly name: string
  /** Throws when the name cannot be had. */
  readonly onRename: (name: string) => void
}

export function NameInput({ label, name, onRename }: Props) {
  const [typed, setTyped] = useState(name)
  const [refusal, setRefusal] = useState<string>()
  useEffect(() => {
    setTyped(name)
    setRefusal(undefined)
  }, [name])
  const rename = (): void => {
    try {
      if (typed !== name) onRename(typed)
      setRefusal(undefined)
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <>
      <input
        className="name"
        aria-label={label}
        aria-invalid={refusal !== undefined}
        maxLength={256}
        spellCheck={false}
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
        onBlur={rename}
        onKeyDown={({ key }) => {
          if (key === 'Enter') rename()
          if (key === 'Escape') setTyped(name)
        }}
      />
      {refusal !== undefined && (
        <p className="wrong" role="alert">
          ⚠ {refusal}; it is still called {name}
        </p>
      )}
    </>
  )
}
