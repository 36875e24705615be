/** In place of a view that has nothing to show: why, and a way on. */
import type { ReactNode } from 'react'

export function Nothing({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <>
      <h1>{title}</h1>
      {children}
      <p>
        <a href="#/">Go to the overview</a>
      </p>
    </>
  )
}
