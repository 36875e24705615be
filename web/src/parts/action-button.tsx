/** A button that cannot be used at times. It keeps the keyboard then, which a browser takes from one that is disabled. */
import type { ButtonHTMLAttributes } from 'react'

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly isOff: boolean
}

export function ActionButton({ isOff, onClick, ...rest }: Props) {
  return <button type="button" aria-disabled={isOff} {...rest} onClick={isOff ? undefined : onClick} />
}
