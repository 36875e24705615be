/** What the page is called, in the browser's tabs and its history: by what is shown. */
import { useEffect } from 'react'

const OWN = 'penstock'

/** Of what is shown, the topmost last. */
const titles: { readonly what: string | undefined }[] = []

/** `what` is undefined where the view has no name of its own. */
export function useTitle(what: string | undefined): void {
  useEffect(() => {
    const title = { what }
    titles.push(title)
    apply()
    return () => {
      titles.splice(titles.indexOf(title), 1)
      apply()
    }
  }, [what])
}

function apply(): void {
  const what = titles.at(-1)?.what
  document.title = what === undefined ? OWN : `${what} – ${OWN}`
}
