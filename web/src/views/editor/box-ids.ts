/** What React Flow calls the box of a component: it writes these ids into selectors, between double quotes, as they are. */

/** An id that ends no string of CSS, whatever the component is called. */
export function boxId(name: string): string {
  return name.replace(/[%"\\\n\r\f]/g, (sign) => `%${sign.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/** The name of the component whose box is called so. */
export function nameOfBox(id: string): string {
  return id.replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
